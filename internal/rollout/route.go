package rollout

import (
	"errors"
	"fmt"
	"math"
)

// Route is everything the data plane needs to know of one endpoint. It is
// replaced whole, never patched: an invalid one is refused and the old one keeps
// serving.
type Route struct {
	EndpointID string   `json:"endpointId"`
	Name       string   `json:"name"`       // slug/endpoint, the inference model name
	Generation uint64   `json:"generation"` // grows with every change; an older one is refused
	Salt       string   `json:"salt"`       // of the sticky hash; the endpoint id
	Members    []Member `json:"members"`
	Pair       *Pair    `json:"pair,omitempty"` // while a rollout moves traffic
}

// Member is one deployment of an endpoint as the data plane sees it.
type Member struct {
	Deployment string    `json:"deployment"`
	Name       string    `json:"name"`   // slug/endpoint/deployment, pins it past the split
	Model      string    `json:"model"`  // what the model field is rewritten to
	Weight     float64   `json:"weight"` // standing weight of one ready replica, finite and ≥ 0
	Replicas   []Replica `json:"replicas"`
}

// Ready counts the replicas that may take a new request.
func (m Member) Ready() int {
	n := 0
	for _, r := range m.Replicas {
		if r.State == ReplicaReady {
			n++
		}
	}
	return n
}

// Pair is the split that a rollout keeps exactly, whatever the replica counts
// do: the pair gets Share of the endpoint, and the target Percent of the pair.
type Pair struct {
	RolloutID string  `json:"rolloutId"`
	Source    string  `json:"source"`  // deployment id
	Target    string  `json:"target"`  // deployment id
	Percent   int     `json:"percent"` // of the pair, on the target, 0 to 100
	Share     float64 `json:"share"`   // of the endpoint, on the pair, 0 to 1
}

// Validate refuses a route that the data plane could not serve as written.
func (r Route) Validate() error {
	if r.EndpointID == "" || r.Name == "" {
		return errors.New("route without an endpoint")
	}
	seen := make(map[string]bool, len(r.Members))
	for _, m := range r.Members {
		if m.Deployment == "" {
			return fmt.Errorf("route of %s: member without a deployment", r.Name)
		}
		if seen[m.Deployment] {
			return fmt.Errorf("route of %s: %s is named twice", r.Name, m.Deployment)
		}
		seen[m.Deployment] = true
		if m.Weight < 0 || math.IsNaN(m.Weight) || math.IsInf(m.Weight, 0) {
			return fmt.Errorf("route of %s: weight %v of %s is not a finite number ≥ 0", r.Name, m.Weight, m.Deployment)
		}
	}
	if p := r.Pair; p != nil {
		if p.Source == p.Target || !seen[p.Source] || !seen[p.Target] {
			return fmt.Errorf("route of %s: the pair %s → %s is not two members", r.Name, p.Source, p.Target)
		}
		if p.Percent < 0 || p.Percent > 100 {
			return fmt.Errorf("route of %s: %d %% is not a share of the pair", r.Name, p.Percent)
		}
		if !(p.Share >= 0 && p.Share <= 1) {
			return fmt.Errorf("route of %s: %v is not a share of the endpoint", r.Name, p.Share)
		}
	}
	return nil
}
