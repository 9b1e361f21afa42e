// Package crowd shows one finished rollout of an engine as many, to a Terraform whose
// state has as many. Tests and benchmarks of what a refresh costs share it: to roll out
// a thousand times would take an hour.
package crowd

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Crowd is an engine's API in which one rollout stands N times. It counts its calls.
type Crowd struct {
	proxy    http.Handler
	rollouts string // path of the endpoint's list
	one      map[string]any
	n        int

	mu    sync.Mutex
	calls int
}

// New stands in front of an engine. The rollout is as the engine tells it, in JSON.
func New(engine, project string, rollout []byte, n int) (*Crowd, error) {
	target, err := url.Parse(engine)
	if err != nil {
		return nil, err
	}
	c := &Crowd{proxy: httputil.NewSingleHostReverseProxy(target), n: n}
	if err := json.Unmarshal(rollout, &c.one); err != nil {
		return nil, err
	}
	c.rollouts = fmt.Sprintf("/v2/projects/%s/endpoints/%v/rollouts", project, c.one["endpointId"])
	return c, nil
}

// Calls takes the number of calls since it was last asked.
func (c *Crowd) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls
	c.calls = 0
	return n
}

// ID is the id of one of the crowd.
func ID(one string, k int) string { return fmt.Sprintf("%sn%04d", one, k) }

// ServeHTTP answers for the crowd, and passes everything else on.
func (c *Crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	id, one := strings.CutPrefix(r.URL.Path, c.rollouts+"/")
	switch {
	case r.Method != http.MethodGet:
	case r.URL.Path == c.rollouts:
		c.page(w, r)
		return
	case one:
		if k, err := strconv.Atoi(id[strings.LastIndex(id, "n")+1:]); err == nil && k < c.n {
			answer(w, c.as(k))
			return
		}
	}
	c.proxy.ServeHTTP(w, r)
}

func (c *Crowd) as(k int) map[string]any {
	out := maps.Clone(c.one)
	out["id"] = ID(fmt.Sprint(c.one["id"]), k)
	return out
}

func (c *Crowd) page(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("after"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit == 0 {
		limit = 50
	}
	all := []any{}
	for k := from; k < min(from+limit, c.n); k++ {
		all = append(all, c.as(k))
	}
	page := map[string]any{"object": "list", "data": all}
	if from+limit < c.n {
		page["next_cursor"] = strconv.Itoa(from + limit)
	}
	answer(w, page)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// State multiplies one resource of a Terraform state, named "TYPE.NAME", which becomes
// TYPE.many with a count of n.
func State(state []byte, address string, n int) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(state, &doc); err != nil {
		return nil, err
	}
	resources, _ := doc["resources"].([]any)
	for _, r := range resources {
		resource, _ := r.(map[string]any)
		instances, _ := resource["instances"].([]any)
		if fmt.Sprintf("%v.%v", resource["type"], resource["name"]) != address || len(instances) != 1 {
			continue
		}
		one, err := json.Marshal(instances[0])
		if err != nil {
			return nil, err
		}
		many := make([]any, 0, n)
		for k := range n {
			var instance map[string]any
			if err := json.Unmarshal(one, &instance); err != nil {
				return nil, err
			}
			instance["index_key"] = k
			for _, part := range []string{"attributes", "identity"} {
				if at, ok := instance[part].(map[string]any); ok {
					at["id"] = ID(fmt.Sprint(at["id"]), k)
				}
			}
			many = append(many, instance)
		}
		resource["name"], resource["instances"] = "many", many
		return json.Marshal(doc)
	}
	return nil, fmt.Errorf("the state has no %s", address)
}
