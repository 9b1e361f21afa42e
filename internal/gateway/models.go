package gateway

import (
	"maps"
	"net/http"
	"slices"
)

// model is one row of GET /v1/models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // Unix seconds at which this gateway learned of it
	OwnedBy string `json:"owned_by"`
}

func (e *endpoint) model() model {
	return model{ID: e.route.Name, Object: "model", Created: e.created, OwnedBy: "sluice"}
}

// listModels lists the endpoints by their inference names, sorted.
func (g *Gateway) listModels(w http.ResponseWriter, _ *http.Request) {
	t := g.table.Load()
	data := make([]model, 0, len(t.endpoints))
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		if d := t.names[name]; d.pinned == "" {
			data = append(data, d.endpoint.model())
		}
	}
	answer(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", data})
}

// oneModel shows one endpoint, or the endpoint of a pinned deployment.
func (g *Gateway) oneModel(w http.ResponseWriter, name string) {
	d, ok := g.table.Load().names[name]
	if !ok {
		e := unknownModel(name)
		refuse(w, e.status, e.body)
		return
	}
	m := d.endpoint.model()
	m.ID = name
	answer(w, http.StatusOK, m)
}

// health answers 200 while requests are welcome and 503 once Shutdown began.
func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) {
	status, word := http.StatusOK, "ok"
	if g.stopping.Load() {
		status, word = http.StatusServiceUnavailable, "stopping"
	}
	answer(w, status, struct {
		Status    string `json:"status"`
		Endpoints int    `json:"endpoints"`
	}{word, len(g.table.Load().endpoints)})
}
