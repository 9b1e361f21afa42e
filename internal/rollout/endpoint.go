package rollout

import "time"

// Endpoint is the stored record of an endpoint. Slot and lock are one field: the
// id of the rollout that is not over yet.
type Endpoint struct {
	ID            string    `json:"id"` // ep_…
	ProjectID     string    `json:"projectId"`
	Name          string    `json:"name"` // without the project's slug
	Visibility    string    `json:"visibility"`
	Split         []Weight  `json:"split,omitempty"` // standing weights, of one ready replica each
	Pair          *Pair     `json:"pair,omitempty"`  // held by a rollout since its start
	Generation    uint64    `json:"generation"`      // of the route; grows with every change of Split or Pair
	ActiveRollout string    `json:"activeRollout,omitempty"`
	Owner         *Owner    `json:"owner,omitempty"`
	Version       int64     `json:"version"`
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
}

// Owner is who reconciles an endpoint, and since when. It holds nobody back: it is how two
// who would undo each other's work see each other.
type Owner struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// Weight is one entry of a standing split.
type Weight struct {
	Deployment string  `json:"deployment"`
	Weight     float64 `json:"weight"` // of one ready replica, finite and ≥ 0
}

// WeightOf returns the standing weight of a deployment; 0 when it has none.
func (e Endpoint) WeightOf(deployment string) float64 {
	for _, w := range e.Split {
		if w.Deployment == deployment {
			return w.Weight
		}
	}
	return 0
}

// Autoscaling is what a deployment's owner asks of the autoscaler beyond bounds;
// kept as given.
type Autoscaling struct {
	ScaleUpWindow     *time.Duration  `json:"scaleUpWindow,omitempty"`
	ScaleDownWindow   *time.Duration  `json:"scaleDownWindow,omitempty"`
	ScaleToZeroWindow *time.Duration  `json:"scaleToZeroWindow,omitempty"`
	Metrics           []ScalingMetric `json:"metrics,omitempty"`
}

// ScalingMetric is one target of the autoscaler.
type ScalingMetric struct {
	Name       string  `json:"name"`
	Target     float64 `json:"target"`
	Type       string  `json:"type"`
	Percentile *int    `json:"percentile,omitempty"`
}

// Deployment is the stored record of a deployment.
type Deployment struct {
	ID          string      `json:"id"` // dep_…
	ProjectID   string      `json:"projectId"`
	EndpointID  string      `json:"endpointId"`
	Name        string      `json:"name"` // without slug and endpoint
	Model       string      `json:"model"`
	ModelID     string      `json:"modelId"`
	RevisionID  string      `json:"revisionId"`
	Config      string      `json:"config"` // cr_… of the operator's serving configs
	Hardware    string      `json:"hardware"`
	Bounds      Bounds      `json:"bounds"`
	Autoscaling Autoscaling `json:"autoscaling"`
	EnableLora  bool        `json:"enableLora,omitempty"`
	Version     int64       `json:"version"`
	CreatedAt   time.Time   `json:"createdAt"`
	UpdatedAt   time.Time   `json:"updatedAt"`
}

// Scope is what an API key may do. Of read, operate and admin a wider one includes the
// narrower.
type Scope string

// The scopes, narrow to wide; break-glass stands apart: no other includes it, and it
// includes none.
const (
	ScopeRead       Scope = "read"        // look
	ScopeOperate    Scope = "operate"     // change endpoints, deployments and rollouts
	ScopeAdmin      Scope = "admin"       // keys
	ScopeBreakGlass Scope = "break-glass" // edit a split that a rollout holds, take an endpoint from its owner
)

// width orders the scopes of which a wider one includes the narrower; 0 for the others.
func (s Scope) width() int {
	return map[Scope]int{ScopeRead: 1, ScopeOperate: 2, ScopeAdmin: 3}[s]
}

// Known reports whether there is such a scope.
func (s Scope) Known() bool { return s == ScopeBreakGlass || s.width() > 0 }

// Key is the stored record of an API key. The secret itself is never stored.
type Key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Hash      string    `json:"hash"` // SHA-256 of the secret, hexadecimal
	Scopes    []Scope   `json:"scopes"`
	ProjectID string    `json:"projectId"`
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
}

// Allows reports whether the key may do what the scope stands for.
func (k Key) Allows(s Scope) bool {
	for _, have := range k.Scopes {
		if have == s || s.width() > 0 && have.width() >= s.width() {
			return true
		}
	}
	return false
}

// Project is the owner of endpoints.
type Project struct {
	ID           string `json:"id"` // proj_…
	Name         string `json:"name"`
	Slug         string `json:"slug"` // first part of every inference model name
	Organization string `json:"organization"`
}
