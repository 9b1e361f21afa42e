package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Config is what a server is made of.
type Config struct {
	Engine     *engine.Engine
	Logger     *slog.Logger
	Version    string       // of this build, told by whoami
	GatewayURL string       // where inference is served, told with endpoints
	Metrics    http.Handler // GET /metrics; nil for none
	Shares     Shares       // what the split really sent; nil for no such numbers
	Streams    StreamLimits
}

// Shares counts what the routers' split brought a deployment: answers to requests
// that were routed under a generation or a later one, pinned requests left out.
type Shares interface {
	Served(deployment string, minGeneration uint64) int64
}

// Server answers the API.
type Server struct {
	Config
	mux     *http.ServeMux
	streams *streams
}

// New makes a server.
func New(c Config) *Server {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Streams = c.Streams.withDefaults()
	s := &Server{Config: c, mux: http.NewServeMux(), streams: newStreams()}
	s.routes()
	return s
}

// Limits of a request.
const (
	maxBody        = 1 << 20          // bytes
	requestTimeout = 25 * time.Second // of a whole call: controls return once accepted
)

func (s *Server) routes() {
	const p = "/projects/{project}/endpoints"
	const e = p + "/{endpoint}"
	read, operate, admin := rollout.ScopeRead, rollout.ScopeOperate, rollout.ScopeAdmin

	s.handle("GET /whoami", read, s.whoami)
	s.handle("GET "+p, read, s.listEndpoints)
	s.handle("POST "+p, operate, s.createEndpoint)
	s.handle("GET "+e, read, s.getEndpoint)
	s.handle("PATCH "+e, operate, s.updateEndpoint)
	s.handle("DELETE "+e, operate, s.deleteEndpoint)
	s.mux.HandleFunc("GET "+e+"/events", s.events)
	s.handle("GET "+e+"/analytics", read, s.analytics)
	s.handle("GET /organizations/{organization}/endpoints", read, s.listOrganization)

	s.handle("GET "+e+"/deployments", read, s.listDeployments)
	s.handle("POST "+e+"/deployments", operate, s.createDeployment)
	s.handle("GET "+e+"/deployments/{deployment}", read, s.getDeployment)
	s.handle("PATCH "+e+"/deployments/{deployment}", operate, s.updateDeployment)
	s.handle("DELETE "+e+"/deployments/{deployment}", operate, s.deleteDeployment)

	s.handle("GET "+e+"/rollouts", read, s.listRollouts)
	s.handle("POST "+e+"/rollouts", operate, s.createRollout)
	s.handle("POST "+e+"/rollouts/preview-defaults", read, s.previewRollout)
	s.handle("GET "+e+"/rollouts/{rollout}", read, s.getRollout)
	s.handle("DELETE "+e+"/rollouts/{rollout}", operate, s.deleteRollout)
	s.handle("POST "+e+"/rollouts/{rollout}/start", operate, s.startRollout)
	s.handle("POST "+e+"/rollouts/{rollout}/pause", operate, s.pauseRollout)
	s.handle("POST "+e+"/rollouts/{rollout}/resume", operate, s.resumeRollout)
	s.handle("POST "+e+"/rollouts/{rollout}/promote", operate, s.promoteRollout)
	s.handle("POST "+e+"/rollouts/{rollout}/cancel", operate, s.cancelRollout)

	// What the platform has and this engine's issue does not: experiments. Their
	// lists are empty, since there are none; making one is an unknown route.
	s.handle("GET "+e+"/abExperiments", read, s.none)
	s.handle("GET "+e+"/shadowExperiments", read, s.none)

	s.handle("GET /public/inference-instance-types", read, s.listHardware)
	s.handle("GET /public/inference-instance-types/{id}", read, s.getHardware)
	s.handle("GET /projects/{project}/configs", read, s.listConfigs)
	s.handle("GET /projects/{project}/configs/{id}", read, s.getConfig)
	s.handle("GET /projects/{project}/placement-profiles", read, s.none)

	s.handle("GET /sluice/keys", admin, s.listKeys)
	s.handle("POST /sluice/keys", admin, s.createKey)
	s.handle("DELETE /sluice/keys/{id}", admin, s.deleteKey)

	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, health{Status: "ok"}) })
	s.mux.HandleFunc("GET /readyz", s.ready)
	if s.Metrics != nil {
		s.mux.Handle("GET /metrics", s.Metrics)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &api.Error{Status: http.StatusNotFound, Code: api.CodeNotFound, Message: "no route " + r.Method + " " + r.URL.Path + "; the API is at /, /v1 and /v2"})
	})
}

type health struct {
	Status string `json:"status"`
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.Engine.Store.Ping(r.Context()); err != nil {
		writeError(w, &api.Error{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Message: "the store does not answer: " + err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, health{Status: "ready"})
}

// ServeHTTP serves the same tree at /, /v1 and /v2, since clients differ in which
// of them they take a base address to mean.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, prefix := range []string{"/v2", "/v1"} {
		if strings.HasPrefix(r.URL.Path, prefix+"/") {
			http.StripPrefix(prefix, s.mux).ServeHTTP(w, r)
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// call is one authenticated request.
type call struct {
	*http.Request
	key  rollout.Key
	body []byte
}

// caller names who asks, for the events.
func (c *call) caller() engine.Caller { return engine.Caller{Name: c.key.Name} }

// handler answers a call with what is encoded as JSON.
type handler func(ctx context.Context, c *call) (any, error)

// handle registers a route behind authentication, a scope and the limits.
func (s *Server) handle(pattern string, scope rollout.Scope, h handler) {
	s.mux.HandleFunc(pattern, s.answered(scope, h))
}

// answered makes a handler an HTTP handler.
func (s *Server) answered(scope rollout.Scope, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		c, err := s.open(ctx, w, r, scope)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		out, err := h(ctx, c)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}
