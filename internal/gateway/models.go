package gateway

import (
	"net/http"
	"slices"
	"strings"
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
	all := g.table.all()
	data := make([]model, 0, len(all))
	for _, e := range all {
		data = append(data, e.model())
	}
	slices.SortFunc(data, func(a, b model) int { return strings.Compare(a.ID, b.ID) })
	answer(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", data})
}

// oneModel shows one endpoint, or the endpoint of a pinned deployment.
func (g *Gateway) oneModel(w http.ResponseWriter, name string) {
	of, _ := g.table.named(name)
	if of == nil {
		e := unknownModel(name)
		refuse(w, e.status, e.body)
		return
	}
	m := of.model()
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
		Endpoints int64  `json:"endpoints"`
	}{word, g.table.endpoints.Load()})
}
