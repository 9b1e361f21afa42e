package gitsource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// advertisement bounds a list of refs: about half a million of them.
const advertisement = 64 << 20

// call is what one call of a remote has met on its way. Libraries in between keep the
// text of an error and lose its type, so the first trouble is kept here.
type call struct {
	mu      sync.Mutex
	trouble error
	moved   string
}

func (c *call) met(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble == nil {
		c.trouble = err
	}
	return err
}

// cause is the first trouble when there is one, else the error itself.
func (c *call) cause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.trouble != nil {
		return c.trouble
	}
	return err
}

// newHTTP is the transport of one remote. Connections are not kept: between two polls
// a server would close them anyhow.
func newHTTP(ca []byte) (*http.Transport, error) {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 30 * time.Second}
	if len(ca) == 0 {
		return t, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("there is no certificate in the certificate authorities")
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// dialHTTP begins a session over HTTP. go-git drops credentials when a redirect leaves
// the origin, and follows redirects of the first request only.
func (r *remote) dialHTTP(ctx context.Context, c *call) (transport.UploadPackSession, error) {
	auth, err := r.authHTTP(ctx)
	if err != nil {
		return nil, err
	}
	client := githttp.NewClient(&http.Client{
		Transport: &guard{remote: r, call: c},
		CheckRedirect: func(req *http.Request, _ []*http.Request) error {
			if req.Response != nil && (req.Response.StatusCode == http.StatusMovedPermanently || req.Response.StatusCode == http.StatusPermanentRedirect) {
				to := *req.URL
				to.Path = strings.TrimSuffix(to.Path, "/info/refs")
				c.mu.Lock()
				c.moved = Redacted(to.String())
				c.mu.Unlock()
			}
			return nil
		},
	})
	ep := *r.endpoint
	return client.NewUploadPackSession(&ep, auth)
}

func (r *remote) authHTTP(ctx context.Context) (transport.AuthMethod, error) {
	a := r.options.Auth
	switch {
	case a.Basic != nil && a.Basic.Password != nil:
		password, err := r.secret(ctx, "password", a.Basic.Password)
		return &githttp.BasicAuth{Username: a.Basic.User, Password: password}, err
	case a.Bearer != nil:
		token, err := r.secret(ctx, "token", a.Bearer)
		return &githttp.TokenAuth{Token: token}, err
	case a.App != nil:
		token, err := r.secret(ctx, "installation token", a.App)
		return &githttp.BasicAuth{Username: "x-access-token", Password: token}, err
	}
	return nil, nil //nolint:nilnil // no way to authenticate is what go-git takes nil for
}

// secret asks for a secret and remembers to hide it.
func (r *remote) secret(ctx context.Context, what string, from Secret) (string, error) {
	s, err := from(ctx)
	if err != nil {
		return "", fmt.Errorf("the %s for %s cannot be read: %w", what, r.name, err)
	}
	return r.vault.keep(s), nil
}

// guard is between go-git and the network: the host's rate, what a status means, the
// kind of the answer, and its size.
type guard struct {
	remote *remote
	call   *call
}

// RoundTrip sends one request.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.remote.options.Hosts.wait(req.Context(), req.URL.Hostname()); err != nil {
		return nil, g.call.met(err)
	}
	res, err := g.remote.http.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := g.judge(req, res); err != nil {
		_ = res.Body.Close()
		return nil, g.call.met(err)
	}
	what, most := "the list of refs", int64(advertisement)
	if req.Method == http.MethodPost {
		what, most = "the pack", g.remote.limits.PackBytes
	}
	res.Body = &bounded{ReadCloser: res.Body, left: most, over: func() error { return g.call.met(tooManyBytes(what, most)) }}
	return res, nil
}

// judge says what an answer means by its status and kind.
func (g *guard) judge(req *http.Request, res *http.Response) error {
	what := fmt.Sprintf("%s of %s", req.Method, Redacted(req.URL.String()))
	switch code := res.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "",
		code == http.StatusForbidden && (res.Header.Get("Retry-After") != "" || res.Header.Get("X-Ratelimit-Remaining") == "0"):
		until := time.Now().Add(patience(res.Header))
		g.remote.options.Hosts.pause(req.URL.Hostname(), until)
		return &Limited{Host: req.URL.Hostname(), Until: until}
	case code == http.StatusUnauthorized:
		return &Refused{What: what, Why: "the server wants other credentials (401)", Hint: "check the token or password, and that it has not expired"}
	case code == http.StatusForbidden:
		return &Refused{What: what, Why: "the server forbids it (403)", Hint: "the credentials need the right to read this repository"}
	case code == http.StatusNotFound, code == http.StatusGone:
		return &Refused{What: what, Why: fmt.Sprintf("there is no such repository, or these credentials may not see it (%d)", code), Hint: "check the URL and what the credentials may read"}
	case code >= 500:
		return fmt.Errorf("%s: the server answered %d", what, code)
	case code >= 400:
		return &Refused{What: what, Why: fmt.Sprintf("the server answered %d", code)}
	case code != http.StatusOK:
		return nil // a redirect, which go-git judges
	}
	want := "application/x-git-upload-pack-advertisement"
	if req.Method == http.MethodPost {
		want = "application/x-git-upload-pack-result"
	}
	if kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); kind != want {
		return &Refused{What: what, Why: fmt.Sprintf("the answer is %q and not %q", printable(kind), want), Hint: "the URL is not that of a Git repository, or a proxy or a sign-in page answers in its place"}
	}
	return nil
}

// patience is how long a server asks to wait: Retry-After in seconds or as a date, else
// a minute; never more than an hour, after which asking again is polite.
func patience(h http.Header) time.Duration {
	wait := time.Minute
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		wait = time.Duration(min(seconds, 3600)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, time.Second), time.Hour)
}

// bounded reads so many bytes and then fails.
type bounded struct {
	io.ReadCloser
	left int64
	over func() error
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, b.over()
	}
	return n, err
}

func tooManyBytes(what string, most int64) error {
	return &TooMuch{What: what, Limit: size(most), Hint: "raise the limit if the repository is meant to be so large"}
}
