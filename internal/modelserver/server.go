package modelserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// maxBody is the largest request body that is read, bytes.
const maxBody = 32 << 20

// Server is the model server. It is an http.Handler; Run serves it.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	born     time.Time
	calls    atomic.Uint64 // inference calls so far; each draws its own random numbers
	draining atomic.Bool
}

// New makes a server whose cold start begins now. Of a Config that does not
// Validate the bad values are used as they are, so validate first.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{cfg: cfg, mux: http.NewServeMux(), born: cfg.Now()}
	s.mux.HandleFunc("POST /v1/chat/completions", s.inference(s.chat))
	s.mux.HandleFunc("POST /v1/completions", s.inference(s.completions))
	s.mux.HandleFunc("POST /v1/embeddings", s.inference(s.embeddings))
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("/", unknown)
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Run serves on the listener until ctx ends, then stops taking connections, lets
// the answers in flight finish and returns nil. Answers that outlast
// Config.DrainTimeout are cut and reported as an error. Run owns the listener.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	srv := s.httpServer()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.draining.Store(true)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	err := srv.Shutdown(limit)
	if err != nil {
		err = fmt.Errorf("drain ended after %s with answers in flight: %w", s.cfg.DrainTimeout, errors.Join(err, srv.Close()))
	}
	if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// Start runs a server on a free port of 127.0.0.1 and returns its host:port. Stop
// cuts what is in flight and waits until the server is gone; it may be called
// twice.
func Start(cfg Config) (addr string, stop func(), err error) {
	if err := cfg.Validate(); err != nil {
		return "", nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("model server: %w", err)
	}
	srv := New(cfg).httpServer()
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	return l.Addr().String(), func() { _ = srv.Close(); <-done }, nil
}

// httpServer is the HTTP side. It has no write timeout: an answer may stream for
// as long as its latency says.
func (s *Server) httpServer() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: s.cfg.KeepAlive}
}

// loading is how much of the cold start is left; 0 or less when the model
// answers.
func (s *Server) loading() time.Duration { return s.cfg.ColdStart - s.cfg.Now().Sub(s.born) }

// call is one inference call with the random numbers that belong to it.
type call struct {
	seq  uint64
	rand *rand.Rand
}

// inference wraps what every inference route shares: readiness, the declared
// error rate, and the OpenAI form of whatever goes wrong before the first byte.
// A draining server still answers: the request was accepted before the listener
// closed, or came over a connection that was already open.
func (s *Server) inference(answer func(http.ResponseWriter, *http.Request, call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if left := s.loading(); left > 0 {
			refuse(w, loading(left))
			return
		}
		n := s.calls.Add(1)
		c := call{seq: n, rand: rand.New(rand.NewPCG(s.cfg.Seed, n))}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := answer(w, r, c); err != nil {
			refuse(w, err)
		}
	}
}

// admit reads the body into the request and draws whether the call fails. The
// draw comes first, so that a call's fate does not depend on its body.
func (s *Server) admit(r *http.Request, c call, into any) error {
	fails := c.rand.Float64() < s.cfg.ErrorRate
	if err := decode(r, into); err != nil {
		return err
	}
	if fails {
		return injected()
	}
	return nil
}

// decode reads exactly one JSON value.
func decode(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		e := invalid("", fmt.Sprintf("The request body is larger than %d bytes", maxBody))
		e.status = http.StatusRequestEntityTooLarge
		return e
	default:
		return invalid("", "We could not parse the JSON body of your request: "+err.Error())
	}
}

// checkModel refuses a call for a model that is not served here.
func (s *Server) checkModel(model string) error {
	if model == "" {
		return invalid("model", "you must provide a model parameter")
	}
	if s.cfg.Model != "" && model != s.cfg.Model {
		return notFound(model)
	}
	return nil
}

// pause waits, or returns false when the client is gone first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unknown answers paths and methods that do not exist.
func unknown(w http.ResponseWriter, r *http.Request) {
	e := invalid("", fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path)).withCode("unknown_url")
	e.status = http.StatusNotFound
	want := map[string]string{
		"/v1/chat/completions": http.MethodPost, "/v1/completions": http.MethodPost, "/v1/embeddings": http.MethodPost,
		"/v1/models": http.MethodGet, "/health": http.MethodGet,
	}[strings.TrimSuffix(r.URL.Path, "/")]
	if want != "" && want != r.Method {
		w.Header().Set("Allow", want)
		e.status = http.StatusMethodNotAllowed
		e.Message = fmt.Sprintf("Not allowed to %s on %s", r.Method, r.URL.Path)
		e = e.withCode("method_not_supported")
	}
	refuse(w, e)
}
