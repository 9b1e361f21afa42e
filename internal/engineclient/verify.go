package engineclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// WrongAddress means that something answered which is not an engine's API, or that
// the engine has no such project. Hint says what to change.
type WrongAddress struct {
	What string
	Hint string
	Err  error
}

func (w *WrongAddress) Error() string { return w.What + ": " + w.Err.Error() + ". " + w.Hint }

func (w *WrongAddress) Unwrap() error { return w.Err }

// Verify asks once whether this is an engine's API, whether it knows the key, and
// whether the key reaches the project. Without it a wrong address or project reads
// like an engine from which everything was deleted.
func (c *Client) Verify(ctx context.Context) error {
	who, err := c.WhoAmI(ctx)
	if err != nil {
		return c.explain(err)
	}
	if c.project == "" || c.project == who.ProjectID {
		_, err := c.Project(ctx)
		return err
	}
	return c.VerifyProject(ctx)
}

// VerifyProject asks whether the project can be listed: only then does a 404 for a
// thing in it mean that the thing is gone.
func (c *Client) VerifyProject(ctx context.Context) error {
	path, err := c.inProject(ctx, "endpoints")
	if err != nil {
		return err
	}
	var page api.Page[api.Endpoint]
	err = c.call(ctx, Request{Method: http.MethodGet, Path: path, Query: url.Values{"limit": {"1"}}}, nil, &page)
	if statusOf(err) != http.StatusNotFound {
		return err
	}
	project, hint := c.project, "Check the project's id"
	if who, whoErr := c.WhoAmI(ctx); whoErr == nil && who.ProjectID != "" {
		hint = fmt.Sprintf("The key belongs to project %s (%s): leave the project out, or name that one", who.ProjectID, who.ProjectSlug)
	}
	return &WrongAddress{What: fmt.Sprintf("the engine at %s has no project %s that this key reaches", c.root, project), Hint: hint, Err: err}
}

// explain turns an answer that no engine gives to whoami into WrongAddress.
func (c *Client) explain(err error) error {
	var notJSON *NotJSON
	if statusOf(err) != http.StatusNotFound && statusOf(err) != http.StatusMethodNotAllowed && !errors.As(err, &notJSON) {
		return err
	}
	hint := "Give the engine's API address (serve's --listen), without a path"
	var refused *api.Error
	switch u, parseErr := url.Parse(c.root); {
	case errors.As(err, &refused) && refused.Code == codeUnknownURL:
		hint = "This looks like a gateway, which serves models (serve's --gateway); the API is on serve's --listen, by default port 8420"
	case parseErr == nil && strings.Trim(u.Path, "/") != "":
		hint = fmt.Sprintf("The address has the path %s; the API is at %s://%s, with or without /v2", u.Path, u.Scheme, u.Host)
	}
	return &WrongAddress{What: "what answers at " + c.root + " is not an engine's API", Hint: hint, Err: err}
}

// codeUnknownURL is what a server of inference answers for a path of the API.
const codeUnknownURL = "unknown_url"

func statusOf(err error) int {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}
