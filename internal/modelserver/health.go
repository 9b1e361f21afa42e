package modelserver

import (
	"net/http"
	"time"
)

// health answers the readiness probe: 200 when the model answers, 503 with a
// JSON body while it loads or drains.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	body := struct {
		Status  string  `json:"status"` // ok, loading or draining
		Model   string  `json:"model"`
		ReadyIn float64 `json:"ready_in_seconds"`
	}{Status: "ok", Model: s.cfg.Model}
	code := http.StatusOK
	if left := s.loading(); left > 0 {
		body.Status, body.ReadyIn, code = "loading", left.Seconds(), http.StatusServiceUnavailable
	} else if s.draining.Load() {
		body.Status, code = "draining", http.StatusServiceUnavailable
	}
	if code != http.StatusOK {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, code, body)
}

// models lists the one model that is served; none for a server that takes any
// name.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	if s.cfg.Model != "" {
		list = append(list, model{ID: s.cfg.Model, Object: "model", Created: s.born.Truncate(time.Second).Unix(), OwnedBy: "sluice"})
	}
	writeJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", list})
}
