package engineclient

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Hardware lists the instance types with their capacity.
func (c *Client) Hardware(ctx context.Context) iter.Seq2[api.InstanceType, error] {
	return pages[api.InstanceType](ctx, c, "/v2/public/inference-instance-types", url.Values{})
}

// Configs lists the serving configs, of one reference model or, with an empty
// name, of all.
func (c *Client) Configs(ctx context.Context, referenceModel string) iter.Seq2[api.Config, error] {
	path, err := c.inProject(ctx, "configs")
	if err != nil {
		return failed[api.Config](err)
	}
	q := url.Values{}
	set(q, "referenceModel", referenceModel)
	return pages[api.Config](ctx, c, path, q)
}

// GetConfig reads one serving config.
func (c *Client) GetConfig(ctx context.Context, id string) (api.Config, error) {
	var out api.Config
	path, err := c.inProject(ctx, "configs", id)
	if err != nil {
		return out, err
	}
	return out, c.call(ctx, Request{Method: http.MethodGet, Path: path}, nil, &out)
}

// Keys lists the API keys, without their secrets. Ours only.
func (c *Client) Keys(ctx context.Context) iter.Seq2[api.Key, error] {
	return pages[api.Key](ctx, c, "/v2/sluice/keys", url.Values{})
}

// CreateKey makes an API key; its secret is in this answer and nowhere after. It
// is not repeated when the answer was lost, since a second key would stay unseen.
func (c *Client) CreateKey(ctx context.Context, body api.CreateKey) (api.Key, error) {
	var out api.Key
	return out, c.call(ctx, Request{Method: http.MethodPost, Path: "/v2/sluice/keys", Repeat: ReadFirst}, body, &out)
}

// DeleteKey ends an API key at once.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	path, err := join("v2", "sluice", "keys", id)
	if err != nil {
		return err
	}
	return c.call(ctx, Request{Method: http.MethodDelete, Path: path}, nil, nil)
}
