package gateway

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
)

// Config shapes a gateway. The zero value gives the defaults.
type Config struct {
	Meter   *meter.Meter // counts every routed request; default a new one
	MaxBody int64        // bytes of a request's body, default 32 MiB; 413 beyond
	// MaxBuffered bounds the bytes of all bodies that wait for their answers to begin,
	// default 256 MiB and never less than one body takes; 503 beyond.
	MaxBuffered int64
	Logger      *slog.Logger                // default discards
	Authorize   func(r *http.Request) error // refuses with 401; nil lets everyone in
	Now         func() time.Time            // default time.Now

	Dial         DialFunc      // reaches a replica, default a net.Dialer with a timeout of 3 s
	IdleTimeout  time.Duration // of a kept connection to a replica, default 4 s: below the 5 s of common model servers
	BodyTimeout  time.Duration // that a client may be silent within its body, default 30 s; in all it has as much and 1 s for every 64 KiB
	WriteTimeout time.Duration // that a client may take no byte that is offered, default 30 s
}

// Gateway routes and forwards. It is an [http.Handler]; [Gateway.Serve] puts it
// behind a server of its own.
type Gateway struct {
	config Config
	budget budget
	meter  *meter.Meter
	log    *slog.Logger

	table    table
	applying sync.Mutex // one writer of the table; guards what follows
	replicas map[string]*replica
	pools    map[string]*pool
	listed   map[string]int      // routes that list a replica, in whatever state
	leaving  map[string]struct{} // replicas that no route lists and that may still hold requests

	server   *http.Server
	stopping atomic.Bool
}

// New makes a gateway without routes.
func New(c Config) *Gateway {
	c.MaxBody = cmp.Or(c.MaxBody, 32<<20)
	c.MaxBuffered = max(cmp.Or(c.MaxBuffered, 256<<20), c.MaxBody+keptBody)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 4*time.Second)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, 30*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	}
	if c.Meter == nil {
		c.Meter = meter.New(meter.Config{Now: c.Now})
	}
	g := &Gateway{
		config: c, budget: budget{most: c.MaxBuffered}, meter: c.Meter, log: c.Logger,
		replicas: make(map[string]*replica), pools: make(map[string]*pool), listed: make(map[string]int), leaving: make(map[string]struct{}),
	}
	g.server = newServer(g)
	return g
}

// Meter returns the meter that counts this gateway's requests.
func (g *Gateway) Meter() *meter.Meter { return g.meter }

// ServeHTTP answers POST /v1/chat/completions, /v1/completions and
// /v1/embeddings, GET /v1/models and /v1/models/{name} (all of them without /v1
// too) and GET /healthz. Every error has OpenAI's shape.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if misframed(w, r) {
		refuse(w, http.StatusBadRequest, apiError{
			Message: "A request must not give both a Content-Length and a Transfer-Encoding, nor the latter in HTTP/1.0.",
			Type:    typeInvalid, Code: "ambiguous_length",
		})
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	model, isModel := strings.CutPrefix(path, "/models/")
	switch {
	case r.URL.Path == "/healthz":
		g.only(w, r, http.MethodGet, g.health)
	case path == "/chat/completions", path == "/completions", path == "/embeddings":
		g.only(w, r, http.MethodPost, func(w http.ResponseWriter, r *http.Request) {
			g.infer(w, r, "/v1"+path) //nolint:contextcheck // the exchange takes its context from r
		})
	case path == "/models":
		g.only(w, r, http.MethodGet, g.listModels)
	case isModel:
		g.only(w, r, http.MethodGet, func(w http.ResponseWriter, _ *http.Request) { g.oneModel(w, model) })
	default:
		refuse(w, http.StatusNotFound, apiError{
			Message: "Unknown path " + r.URL.Path + ". See GET /v1/models.", Type: typeInvalid, Code: "unknown_url",
		})
	}
}

// only lets one method through, and, but for the health check, only those whom
// Authorize lets in.
func (g *Gateway) only(w http.ResponseWriter, r *http.Request, method string, next http.HandlerFunc) {
	if r.Method != method {
		w.Header().Set("Allow", method)
		refuse(w, http.StatusMethodNotAllowed, apiError{
			Message: r.URL.Path + " takes " + method + " only.", Type: typeInvalid, Code: "method_not_allowed",
		})
		return
	}
	if g.config.Authorize != nil && r.URL.Path != "/healthz" {
		if err := g.config.Authorize(r); err != nil {
			refuse(w, http.StatusUnauthorized, apiError{Message: err.Error(), Type: "authentication_error", Code: "invalid_api_key"})
			return
		}
	}
	next(w, r)
}

// infer answers one inference request.
func (g *Gateway) infer(w http.ResponseWriter, r *http.Request, path string) {
	body, err := g.readBody(w, r)
	defer body.free()
	var refusal *refusalError
	switch {
	case errors.As(err, &refusal):
		refuse(w, refusal.status, refusal.body)
		return
	case err != nil: // the client left within its body: nobody to answer, nothing routed
		panic(http.ErrAbortHandler)
	}
	c, err := parseCall(body.bytes)
	if errors.As(err, &refusal) {
		refuse(w, refusal.status, refusal.body)
		return
	}
	x := &exchange{gateway: g, w: w, r: r, path: path, call: c, body: body}
	x.run()
}
