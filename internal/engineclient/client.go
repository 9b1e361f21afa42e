package engineclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Config says how to reach an engine.
type Config struct {
	BaseURL   string // http(s)://host[:port][/v1|/v2], with or without a slash at the end
	APIKey    string
	RenewKey  func() (string, error) // reads the key again when it was refused; nil for a key that stays
	Project   string                 // proj_…; empty for the key's own, asked once
	UserAgent string                 // default "sluice"

	AttemptTimeout time.Duration // of one attempt; default 30 s
	Retries        Retries
	PerSecond      float64           // most attempts a second, of all callers together; 0 for no limit
	Transport      http.RoundTripper // default http.DefaultTransport
}

// Client calls an engine. It is safe for concurrent use.
type Client struct {
	do     Doer
	root   string
	stream source // of events; nil for none
	hints  *hints // for waits; nil for none

	keyGrace time.Duration // for which a wait outlives a refused key

	mu      sync.Mutex
	project string
	who     *api.WhoAmI
}

// New makes a client; nothing is sent yet.
func New(c Config) (*Client, error) {
	root, err := rootOf(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(c.APIKey) == "" {
		return nil, errors.New("no API key: every call to an engine needs one")
	}
	if c.UserAgent == "" {
		c.UserAgent = "sluice"
	}
	if c.AttemptTimeout <= 0 {
		c.AttemptTimeout = 30 * time.Second
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	inner := wire{
		http:      &http.Client{Transport: c.Transport},
		base:      root,
		keys:      &keyring{key: strings.TrimSpace(c.APIKey), renew: c.RenewKey},
		userAgent: c.UserAgent,
	}
	var attempts Doer = attemptTimeout{next: secretive{next: inner, keys: inner.keys}, each: c.AttemptTimeout}
	if c.PerSecond > 0 {
		attempts = newPaced(attempts, c.PerSecond)
	}
	client := over(root, c.Project, c.Retries, renewing{next: attempts, keys: inner.keys})
	if c.RenewKey != nil {
		client.keyGrace = keyGrace
	}
	return client.following(streams{wire: inner, patience: c.AttemptTimeout}), nil
}

// over stacks the decorators on a Doer that makes single attempts.
func over(root, project string, how Retries, attempts Doer) *Client {
	return &Client{
		do:      typedErrors{next: retrying{next: attempts, how: how.withDefaults(), url: root}},
		root:    root,
		project: strings.TrimSpace(project),
	}
}

// following gives a client a source of event streams.
func (c *Client) following(s source) *Client {
	c.stream, c.hints = s, &hints{client: c, feeds: map[string]*sharedFeed{}}
	return c
}

// rootOf cuts the version off a base URL: which one a call needs is the call's
// affair, since whoami lives on v1 at the hosted platform.
func rootOf(base string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return "", fmt.Errorf("engine URL %q: %w", base, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("engine URL %q is not of the form http(s)://host[:port]", base)
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	for _, version := range []string{"/v1", "/v2"} {
		path = strings.TrimSuffix(path, version)
	}
	return u.Scheme + "://" + u.Host + path, nil
}

// URL is the engine's address without a version.
func (c *Client) URL() string { return c.root }

// WhoAmI asks whose key this is. The answer is kept for the client's life.
func (c *Client) WhoAmI(ctx context.Context) (api.WhoAmI, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.who == nil {
		var who api.WhoAmI
		if err := c.call(ctx, Request{Method: http.MethodGet, Path: "/v1/whoami"}, nil, &who); err != nil {
			return api.WhoAmI{}, err
		}
		c.who = &who
	}
	return *c.who, nil
}

// Project is the configured project, or the key's own.
func (c *Client) Project(ctx context.Context) (string, error) {
	if c.project != "" {
		return c.project, nil
	}
	who, err := c.WhoAmI(ctx)
	if err != nil {
		return "", err
	}
	if who.ProjectID == "" {
		return "", errors.New("the engine names no project for this key; name one")
	}
	return who.ProjectID, nil
}

// Can reports whether the engine announced a capability. A hosted one announces none.
func (c *Client) Can(ctx context.Context, capability string) (bool, error) {
	who, err := c.WhoAmI(ctx)
	return who.Sluice != nil && slices.Contains(who.Sluice.Capabilities, capability), err
}

// call sends a request with a JSON body and reads the answer into out; either may
// be nil.
func (c *Client) call(ctx context.Context, req Request, in, out any) error {
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", req.Method, req.Path, err)
		}
		req.Body = b
	}
	answer, err := c.do.Do(ctx, req)
	if err != nil {
		return err
	}
	if out == nil || answer.Status == http.StatusNoContent || len(answer.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer.Body, out); err != nil {
		return &NotJSON{Request: req.Method + " " + req.Path, Status: answer.Status, Excerpt: excerpt(answer.Body), Err: err}
	}
	return nil
}

// inProject makes a path below the project from plain segments.
func (c *Client) inProject(ctx context.Context, segments ...string) (string, error) {
	project, err := c.Project(ctx)
	if err != nil {
		return "", err
	}
	return join(append([]string{"v2", "projects", project}, segments...)...)
}

// join escapes segments into a path. A segment that would change the path's
// meaning is refused, so that an empty id never turns one thing into its list.
func join(segments ...string) (string, error) {
	var b strings.Builder
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return "", fmt.Errorf("%q is not an id", s)
		}
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String(), nil
}
