package engineclient

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// EventQuery narrows an endpoint's feed; all conditions must hold. Since is
// inclusive and Until exclusive.
type EventQuery struct {
	Types         []string
	DeploymentIDs []string
	SourceKinds   []string
	SubjectID     string
	MinLevel      string
	Since, Until  time.Time
	PageSize      int
}

func (q EventQuery) values() url.Values {
	v := url.Values{}
	set(v, "types", strings.Join(q.Types, ","))
	set(v, "deploymentIds", strings.Join(q.DeploymentIDs, ","))
	set(v, "sourceKinds", strings.Join(q.SourceKinds, ","))
	set(v, "subjectId", q.SubjectID)
	set(v, "minLevel", q.MinLevel)
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if !q.Until.IsZero() {
		v.Set("until", q.Until.UTC().Format(time.RFC3339Nano))
	}
	if q.PageSize > 0 {
		v.Set("limit", strconv.Itoa(q.PageSize))
	}
	return v
}

// Events lists an endpoint's feed, newest first.
func (c *Client) Events(ctx context.Context, endpoint string, q EventQuery) iter.Seq2[api.Event, error] {
	path, err := c.inProject(ctx, "endpoints", endpoint, "events")
	if err != nil {
		return failed[api.Event](err)
	}
	return pages[api.Event](ctx, c, path, q.values())
}
