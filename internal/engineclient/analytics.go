package engineclient

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Analytics sums up an endpoint's traffic between two instants, as far back as the
// engine remembers.
func (c *Client) Analytics(ctx context.Context, endpoint string, from, to time.Time) (api.Analytics, error) {
	path, err := c.inProject(ctx, "endpoints", endpoint, "analytics")
	if err != nil {
		return api.Analytics{}, err
	}
	q := url.Values{"startTime": {from.UTC().Format(time.RFC3339Nano)}, "endTime": {to.UTC().Format(time.RFC3339Nano)}}
	var out api.Analytics
	err = c.call(ctx, Request{Method: http.MethodGet, Path: path, Query: q}, nil, &out)
	return out, err
}
