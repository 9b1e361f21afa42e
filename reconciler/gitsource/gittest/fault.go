package gittest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// Fault is put between a client and the repository.
type Fault struct {
	On Kind // empty for both
	Do func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

// Inject puts faults in, those given first nearest to the repository. It returns what
// takes all faults out again.
func (s *Server) Inject(faults ...Fault) (heal func()) {
	s.mu.Lock()
	s.faults = append(s.faults, faults...)
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.faults = nil
		s.mu.Unlock()
	}
}

// BlackHole begins an answer and never goes on, until the client leaves. reached is
// closed when the first call is in it.
func (s *Server) BlackHole(on Kind) (f Fault, reached <-chan struct{}) {
	in := make(chan struct{})
	var once sync.Once
	return Fault{on, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", resultType(r))
		w.WriteHeader(http.StatusOK)
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		once.Do(func() { close(in) })
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
	}}, in
}

// Truncated cuts an answer after so many bytes, in the middle of the connection.
func Truncated(on Kind, after int) Fault {
	return Fault{on, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		whole := record(r, next)
		w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
		w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
		_, _ = w.Write(whole.Body.Bytes()[:min(after, whole.Body.Len())])
		panic(http.ErrAbortHandler)
	}}
}

// Garbled flips one byte of an answer, counted from its end.
func Garbled(on Kind, fromEnd int) Fault {
	return Fault{on, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		whole := record(r, next)
		body := whole.Body.Bytes()
		if len(body) > fromEnd {
			body[len(body)-1-fromEnd] ^= 0xff
		}
		w.Header().Set("Content-Type", whole.Header().Get("Content-Type"))
		_, _ = w.Write(body)
	}}
}

// Status answers with a status and headers (pairs of name and value) and a body that
// tells what a careless server would: the credentials that it was sent.
func Status(on Kind, code int, headers ...string) Fault {
	return Fault{on, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, password, _ := r.BasicAuth()
		http.Error(w, fmt.Sprintf("no: %s %s", r.Header.Get("Authorization"), password), code)
	}}
}

// WrongType answers with a page, as a sign-in portal does.
func WrongType(on Kind) Fault {
	return Fault{on, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>sign in</html>"))
	}}
}

// Huge sends a pack that does not end, until the client leaves.
func (s *Server) Huge() Fault {
	return Fault{Pack, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", resultType(r))
		_, _ = w.Write([]byte("0008NAK\n"))
		noise := append([]byte("fff0\x02"), bytes.Repeat([]byte{0}, 0xfff0-5)...)
		for {
			select {
			case <-s.closing:
				return
			default:
			}
			if _, err := w.Write(noise); err != nil {
				return
			}
		}
	}}
}

// Before does something each time before a call reaches the repository, such as moving
// a ref between the list of refs and the fetch.
func Before(on Kind, do func()) Fault {
	return Fault{on, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		do()
		next.ServeHTTP(w, r)
	}}
}

// Slow lets a call through when the gate is closed.
func (s *Server) Slow(on Kind, gate <-chan struct{}) Fault {
	return Fault{on, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-gate:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-s.closing:
		}
	}}
}

func record(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	next.ServeHTTP(w, r)
	return w
}

func resultType(r *http.Request) string {
	if r.Method == http.MethodPost {
		return "application/x-git-upload-pack-result"
	}
	return "application/x-git-upload-pack-advertisement"
}
