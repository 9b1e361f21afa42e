package forgetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Serve starts a server that speaks a dialect over the world, until the test ends, and
// returns its base address.
func (w *World) Serve(t testing.TB, d Dialect) string {
	t.Helper()
	mux := http.NewServeMux()
	v := &server{w: w, dialect: d, mux: mux}
	switch d {
	case GitHub:
		v.github()
	case GitLab:
		v.gitlab()
	case Gitea:
		v.gitea()
	}
	s := httptest.NewServer(v)
	t.Cleanup(s.Close)
	return s.URL
}

type server struct {
	w       *World
	dialect Dialect
	mux     *http.ServeMux
}

// request is a call that came in: its body is read already, so that nobody waits for it
// under the world's lock.
type request struct {
	*http.Request
	body []byte
	s    *state
}

// number is a path value that is a number.
func (r *request) number(name string) int {
	n, err := strconv.Atoi(r.PathValue(name))
	if err != nil {
		return -1
	}
	return n
}

func (r *request) id(name string) int64 { return int64(r.number(name)) }

// decode reads the JSON of a body.
func (r *request) decode(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return &problem{status: http.StatusBadRequest, message: "Problems parsing JSON"}
	}
	return nil
}

// list is an answer that goes out in pages.
type list struct {
	things []any
	most   int // a page; the forge's own bound
	whole  bool
}

// listed makes a list of things as JSON.
func listed[T any](most int, all []T, as func(T) fields) list {
	out := list{most: most, things: make([]any, len(all))}
	for i, v := range all {
		out.things[i] = as(v)
	}
	return out
}

// on answers a route. Its call is found by the request where one route serves several.
func (v *server) on(route string, call Call, act func(r *request) (any, error)) {
	v.route(route, func(*http.Request) Call { return call }, act)
}

func (v *server) route(route string, call func(*http.Request) Call, act func(r *request) (any, error)) {
	v.mux.HandleFunc(route, func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		perform := v.w.read
		if r.Method != http.MethodGet {
			perform = v.w.write
		}
		var answer any
		err = perform(r.Context(), call(r), func(s *state) (err error) {
			answer, err = act(&request{Request: r, body: body, s: s})
			if err == nil {
				// While the lock is held: an answer may point into the state.
				answer, err = rendered(answer)
			}
			return err
		})
		v.answer(rw, r, answer, err)
	})
}

// rendered turns what is not a list into its JSON.
func rendered(answer any) (any, error) {
	if c, ok := answer.(combined); ok {
		inner, err := rendered(c.list)
		l, _ := inner.(list)
		return combined{list: l}, err
	}
	if l, ok := answer.(list); ok {
		for i, thing := range l.things {
			raw, err := json.Marshal(thing)
			if err != nil {
				return nil, err
			}
			l.things[i] = json.RawMessage(raw)
		}
		return l, nil
	}
	raw, err := json.Marshal(answer)
	return json.RawMessage(raw), err
}

// ServeHTTP checks the token and then routes.
func (v *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	v.w.mu.Lock()
	token := v.w.token
	v.w.mu.Unlock()
	given := strings.TrimPrefix(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "token ")
	if given != token && !strings.Contains(r.URL.Path, "/api/v3/app") {
		v.answer(rw, r, nil, &problem{status: http.StatusUnauthorized, message: "Bad credentials"})
		return
	}
	v.mux.ServeHTTP(rw, r)
}

func (v *server) answer(rw http.ResponseWriter, r *http.Request, answer any, err error) {
	var p *problem
	switch {
	case errors.Is(err, errLost):
		panic(http.ErrAbortHandler) // the connection ends without an answer
	case errors.As(err, &p):
		v.refuse(rw, p)
		return
	case err != nil:
		return // the client is gone
	}
	v.limits(rw.Header())
	status := http.StatusOK
	if r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	raw, ok := answer.(json.RawMessage)
	switch l := answer.(type) {
	case list:
		raw, ok = v.page(rw.Header(), r, l), true
	case combined:
		raw, ok = json.RawMessage(fmt.Sprintf(`{"total_count":%d,"statuses":%s}`, len(l.things), v.page(rw.Header(), r, l.list))), true
	}
	if !ok {
		panic(fmt.Sprintf("forgetest: an answer of type %T", answer))
	}
	rw.Header().Set("Content-Type", "application/json; charset=utf-8")
	if r.Method == http.MethodGet {
		sum := sha256.Sum256(append(bytes.Clone(raw), rw.Header().Get("Link")...))
		etag := `W/"` + hex.EncodeToString(sum[:8]) + `"`
		rw.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			v.w.mu.Lock()
			v.w.notMod++
			v.w.mu.Unlock()
			rw.WriteHeader(http.StatusNotModified)
			return
		}
	}
	rw.WriteHeader(status)
	_, _ = rw.Write(raw)
}

// limits are the headers in which forges tell how many calls are left.
func (v *server) limits(h http.Header) {
	reset := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	switch v.dialect {
	case GitHub:
		h.Set("X-RateLimit-Limit", "5000")
		h.Set("X-RateLimit-Remaining", "4999")
		h.Set("X-RateLimit-Reset", reset)
	case GitLab:
		h.Set("RateLimit-Limit", "2000")
		h.Set("RateLimit-Remaining", "1999")
		h.Set("RateLimit-Reset", reset)
	case Gitea: // tells none
	}
}

// refuse words a refusal as the forge does.
func (v *server) refuse(rw http.ResponseWriter, p *problem) {
	v.limits(rw.Header())
	message := p.message
	if p.retryAfter > 0 {
		rw.Header().Set("Retry-After", strconv.Itoa(int(p.retryAfter/time.Second)))
		message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
	}
	body := fields{"message": message}
	switch v.dialect {
	case GitHub:
		body["documentation_url"] = "https://docs.github.com/rest"
		body["status"] = strconv.Itoa(p.status)
	case GitLab:
		body["message"] = fmt.Sprintf("%d %s", p.status, message)
	case Gitea:
		body["url"] = "/api/swagger"
	}
	rw.Header().Set("Content-Type", "application/json; charset=utf-8")
	rw.WriteHeader(p.status)
	_ = json.NewEncoder(rw).Encode(body)
}

// page cuts a list and tells the way to the others.
func (v *server) page(h http.Header, r *http.Request, l list) json.RawMessage {
	q := r.URL.Query()
	of := func(name string, fallback int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil && n > 0 {
			return n
		}
		return fallback
	}
	size := "per_page"
	if v.dialect == Gitea {
		size = "limit"
	}
	v.w.mu.Lock()
	most := l.most
	if v.w.mostPage > 0 {
		most = min(most, v.w.mostPage)
	}
	v.w.mu.Unlock()
	page, per := of("page", 1), min(of(size, 30), most)
	if l.whole {
		page, per = 1, max(1, len(l.things))
	}
	from := min((page-1)*per, len(l.things))
	to := min(from+per, len(l.things))
	if to < len(l.things) {
		q.Set("page", strconv.Itoa(page+1))
		h.Set("Link", fmt.Sprintf("<http://%s%s?%s>; rel=\"next\"", r.Host, r.URL.EscapedPath(), q.Encode()))
		if v.dialect == GitLab {
			h.Set("X-Next-Page", strconv.Itoa(page+1))
		}
	}
	raw, err := json.Marshal(slices.Clone(l.things[from:to]))
	if err != nil {
		panic(err)
	}
	return raw
}

// notFound is what a forge says of what is not there, or not for this token.
func notFound(what string) error {
	return &problem{status: http.StatusNotFound, message: what + "Not Found"}
}

// instant is a time as JSON, null for none.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// since reads a parameter that is an instant.
func (r *request) since(name string) time.Time {
	t, _ := time.Parse(time.RFC3339, r.URL.Query().Get(name)) // none is the beginning of time
	return t
}
