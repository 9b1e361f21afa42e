// Package rest is what the adaptors of the forges share below their client libraries:
// one transport that authorizes, bounds, asks conditionally and turns every refusal
// into an error that says which reaction it needs.
package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Tokens is where the token of a forge comes from.
type Tokens interface {
	// Token is the one to use now.
	Token(ctx context.Context) (string, error)
	// Refused tells that the forge answered 401 to a token: the next one must be fresh.
	Refused(token string)
}

// Ask keeps the token that a function gives until the forge refuses it.
func Ask(read func(ctx context.Context) (string, error)) Tokens { return &asked{read: read} }

type asked struct {
	read  func(ctx context.Context) (string, error)
	mu    sync.Mutex
	token string
}

func (a *asked) Token(ctx context.Context) (string, error) {
	a.mu.Lock()
	token := a.token
	a.mu.Unlock()
	if token != "" {
		return token, nil
	}
	token, err := a.read(ctx)
	if err != nil {
		return "", err
	}
	if token == "" {
		return "", errors.New("the token of the forge is empty")
	}
	a.mu.Lock()
	a.token = token
	a.mu.Unlock()
	return token, nil
}

func (a *asked) Refused(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == token {
		a.token = ""
	}
}

// Bounds of one call.
const (
	Timeout   = 30 * time.Second
	mostBytes = 16 << 20 // of one answer
	mostKept  = 512      // answers that are kept for conditional requests …
	keptBytes = 32 << 20 // … and their bytes in all
)

// Options of a transport.
type Options struct {
	Base      *url.URL // scheme and host that get the token; a redirect elsewhere does not
	Tokens    Tokens   // nil when the request brings its own authorization
	Authorize func(header http.Header, token string)
	Next      http.RoundTripper // nil for the default
}

// Client is an HTTP client over a transport with these options. It differs from others
// in one thing: an answer of 400 or more is an error, *Answer, which client libraries
// pass on, so that one place judges it.
func Client(o Options) *http.Client {
	if o.Next == nil {
		o.Next = http.DefaultTransport
	}
	return &http.Client{Timeout: Timeout, Transport: &transport{Options: o, kept: newKept(keptBytes)}}
}

type transport struct {
	Options
	kept *kept
}

// RoundTrip sends a request, once more with a fresh token after a 401.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	for again := range 2 {
		token, err := t.token(r)
		if err != nil {
			return nil, fmt.Errorf("the token of the forge cannot be had: %w", err)
		}
		resp, err := t.send(r, body, token)
		var answer *Answer
		if errors.As(err, &answer) && answer.Status == http.StatusUnauthorized && token != "" {
			t.Tokens.Refused(token)
			if again == 0 {
				continue
			}
		}
		return resp, err
	}
	panic("unreachable: the second try returns")
}

// bodyOf reads a request's body, so that it can be sent twice.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	return io.ReadAll(r.Body)
}

// token is the one for this request; none for another host than the forge's.
func (t *transport) token(r *http.Request) (string, error) {
	if t.Tokens == nil || r.URL.Scheme != t.Base.Scheme || r.URL.Host != t.Base.Host {
		return "", nil
	}
	return t.Tokens.Token(r.Context())
}

func (t *transport) send(r *http.Request, body []byte, token string) (*http.Response, error) {
	out := r.Clone(r.Context())
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	if token != "" {
		t.Authorize(out.Header, token)
	}
	key := r.URL.String()
	old, known := t.kept.get(key)
	if r.Method != http.MethodGet {
		known = false
	}
	if known {
		out.Header.Set("If-None-Match", old.etag)
	}
	resp, err := t.Next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	content, err := readAll(resp)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
	}
	if known && resp.StatusCode == http.StatusNotModified {
		return old.answer(resp), nil
	}
	if resp.StatusCode >= 400 || resp.StatusCode == http.StatusNotModified {
		return nil, &Answer{Method: r.Method, Path: r.URL.Path, Status: resp.StatusCode, Header: resp.Header, Body: content}
	}
	if etag := resp.Header.Get("ETag"); r.Method == http.MethodGet && resp.StatusCode == http.StatusOK && etag != "" {
		t.kept.put(key, &stored{etag: etag, header: resp.Header.Clone(), body: content})
	}
	return withBody(resp, content), nil
}

// readAll takes an answer whole, within the bound.
func readAll(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > mostBytes {
		return nil, fmt.Errorf("the answer is larger than %d MiB", mostBytes>>20)
	}
	return content, nil
}

func withBody(resp *http.Response, content []byte) *http.Response {
	resp.Body = io.NopCloser(bytes.NewReader(content))
	resp.ContentLength = int64(len(content))
	resp.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return resp
}
