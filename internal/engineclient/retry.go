package engineclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Retries bounds how a call is tried again. The wait before try n is drawn from 0
// to First × 2^(n−1), at most Most, unless the engine names one.
type Retries struct {
	Attempts int           // in all, at least 1; default 5
	First    time.Duration // default 500 ms
	Most     time.Duration // default 10 s
}

func (r Retries) withDefaults() Retries {
	if r.Attempts < 1 {
		r.Attempts = 5
	}
	if r.First <= 0 {
		r.First = 500 * time.Millisecond
	}
	if r.Most <= 0 {
		r.Most = 10 * time.Second
	}
	return r
}

// Unreachable means that an engine gave no answer in all attempts.
type Unreachable struct {
	URL      string
	Attempts int
	Err      error
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("no answer from the engine at %s in %d attempt(s): %v", u.URL, u.Attempts, u.Err)
}

func (u *Unreachable) Unwrap() error { return u.Err }

// retrying tries a call again on connection failures, 408, 429, 502, 503, 504 and,
// unless the engine says otherwise, 409.
type retrying struct {
	next Doer
	how  Retries
	url  string
}

func (r retrying) Do(ctx context.Context, req Request) (Response, error) {
	for try := 1; ; try++ {
		answer, err := r.next.Do(ctx, req)
		if ctx.Err() != nil && err != nil {
			return Response{}, ctx.Err()
		}
		last := try >= r.how.Attempts
		switch {
		case err != nil && (last || (req.Repeat == ReadFirst && !neverSent(err))):
			return Response{}, &Unreachable{URL: r.url, Attempts: try, Err: err}
		case err == nil && (last || !again(answer, req.Repeat)):
			return answer, nil
		}
		if err := sleep(ctx, r.wait(try, answer)); err != nil {
			return Response{}, err
		}
	}
}

// again reports whether an answer asks for another try.
func again(a Response, how Repeat) bool {
	switch a.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch a.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusConflict:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return how == RepeatFreely // it may have been carried out
	}
	return false
}

// wait is the engine's Retry-After if there is one, and up to a quarter more, so that
// callers which were told the same do not come back together; else it is drawn with
// full jitter.
func (r retrying) wait(try int, a Response) time.Duration {
	if d, ok := retryAfter(a.Header); ok {
		return min(d+rand.N(d/4+1), 6*r.how.Most)
	}
	ceiling := r.how.First << (try - 1)
	if ceiling > r.how.Most || ceiling <= 0 {
		ceiling = r.how.Most
	}
	return rand.N(ceiling) + 1
}

func retryAfter(h http.Header) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms >= 0 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if secs, err := strconv.ParseFloat(v, 64); err == nil && secs >= 0 && secs < 86400 {
		return time.Duration(secs * float64(time.Second)), true
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

// sleep waits, or returns the context's error at once when it ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
