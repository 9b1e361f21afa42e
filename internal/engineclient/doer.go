package engineclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Doer carries one request to its answer. An error means that there was none; any
// HTTP status is an answer.
type Doer interface {
	Do(ctx context.Context, req Request) (Response, error)
}

// Request is one call. Path starts with a slash and is escaped already.
type Request struct {
	Method         string
	Path           string
	Query          url.Values
	Body           []byte // JSON; nil for none
	IdempotencyKey string // of a create: derived from what is created, never from the clock
	Repeat         Repeat
}

// Repeat says what may be done when an answer was lost on the way.
type Repeat int

const (
	// RepeatFreely marks calls that do the same when done twice: reads, levels,
	// starts, and creates that carry an idempotency key.
	RepeatFreely Repeat = iota
	// ReadFirst marks controls: the rollout is read before one is sent again, since
	// a second cancel is refused though the first was accepted.
	ReadFirst
)

// Response is an answer with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// maxBody bounds an answer; a page of 10000 events stays well below.
const maxBody = 64 << 20

// wire is the innermost Doer: one HTTP attempt.
type wire struct {
	http      *http.Client
	base      string
	keys      *keyring
	userAgent string
}

func (w wire) Do(ctx context.Context, req Request) (Response, error) {
	answer, err := w.send(ctx, req, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err != nil {
		return Response{}, fmt.Errorf("the answer of %s %s broke off: %w", req.Method, req.Path, err)
	}
	if len(got) > maxBody {
		return Response{}, fmt.Errorf("the answer of %s %s is longer than %d bytes", req.Method, req.Path, maxBody)
	}
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: got}, nil
}

// send makes one attempt and returns once the head of the answer is there; the caller
// reads and closes its body.
func (w wire) send(ctx context.Context, req Request, header http.Header) (*http.Response, error) {
	target := w.base + req.Path
	if len(req.Query) > 0 {
		target += "?" + req.Query.Encode()
	}
	var body io.Reader
	if req.Body != nil {
		body = bytes.NewReader(req.Body)
	}
	hr, err := http.NewRequestWithContext(ctx, req.Method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.Path, err)
	}
	hr.Header = header
	hr.Header.Set("Authorization", "Bearer "+w.keys.current())
	hr.Header.Set("User-Agent", w.userAgent)
	if req.Body != nil {
		hr.Header.Set("Content-Type", "application/json")
	}
	if req.IdempotencyKey != "" {
		hr.Header.Set("Idempotency-Key", req.IdempotencyKey)
	}
	return w.http.Do(hr)
}

// attemptTimeout bounds one attempt, so that a hanging connection becomes a retry.
type attemptTimeout struct {
	next Doer
	each time.Duration
}

func (a attemptTimeout) Do(ctx context.Context, req Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, a.each)
	defer cancel()
	return a.next.Do(ctx, req)
}

// neverSent reports whether an error proves that the engine saw nothing of the call.
func neverSent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}
