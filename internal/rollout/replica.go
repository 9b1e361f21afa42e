package rollout

import "time"

// Bounds are the autoscaling limits of a deployment, in replicas. Zero for both
// means stopped.
type Bounds struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Stopped reports whether the bounds ask for no replica at all.
func (b Bounds) Stopped() bool { return b.Max == 0 }

// Clamp returns n moved into the bounds.
func (b Bounds) Clamp(n int) int { return max(b.Min, min(n, b.Max)) }

// ReplicaState is the life of one replica as its fleet sees it.
type ReplicaState string

// The states of a replica, in the order of its life.
const (
	ReplicaPending  ReplicaState = "PENDING"  // wanted, no capacity assigned yet
	ReplicaStarting ReplicaState = "STARTING" // placed and loading; not answering yet
	ReplicaReady    ReplicaState = "READY"    // its model server answers the probe
	ReplicaDraining ReplicaState = "DRAINING" // finishes what it holds, takes nothing new
	ReplicaFailed   ReplicaState = "FAILED"   // exited or never became ready; restarts with back-off
)

// Replica is one running copy of a deployment's model server.
type Replica struct {
	ID         string       `json:"id"`
	Deployment string       `json:"deployment"`
	Address    string       `json:"address,omitempty"` // host:port of its HTTP server; empty for one that serves nothing
	State      ReplicaState `json:"state"`
	Since      time.Time    `json:"since"`
	GPUs       []int        `json:"gpus,omitempty"` // indices from the operator's inventory
	Restarts   int          `json:"restarts,omitempty"`
	Message    string       `json:"message,omitempty"` // why it is in this state, for a person
}

// Probe tells how readiness is asked: an HTTP GET answered by the model server
// itself, since an open port says nothing about a loaded model.
type Probe struct {
	Path     string        `json:"path"`     // default /health
	Status   int           `json:"status"`   // expected status, default 200
	Interval time.Duration `json:"interval"` // between two tries, default 1 s
	Timeout  time.Duration `json:"timeout"`  // of one try, default 2 s
	Failures int           `json:"failures"` // consecutive failures after which a ready replica counts as not ready, default 3
}

// ServingConfig is an operator's declaration of how a model is served. It is the
// only place where a command stands: the API and HCL name a config, never a
// command line.
type ServingConfig struct {
	ID           string            `json:"id"` // cr_…
	Name         string            `json:"name"`
	Models       []string          `json:"models"`   // models it may serve; "*" for any
	Hardware     string            `json:"hardware"` // id of a hardware type of the inventory
	Command      []string          `json:"-"`        // argv; {port} {model} {deployment} {replica} are replaced
	Env          map[string]string `json:"-"`
	Dir          string            `json:"-"` // working folder; empty for the server's own
	Probe        Probe             `json:"-"`
	ColdStart    time.Duration     `json:"coldStart"` // budget from start to ready, default 10 min
	DrainTimeout time.Duration     `json:"-"`         // for requests in flight before SIGTERM, default 600 s
	StopTimeout  time.Duration     `json:"-"`         // between SIGTERM and SIGKILL, default 30 s
	Simulated    SimulatedServing  `json:"-"`
}

// SimulatedServing is how a config behaves under the simulated fleet driver.
type SimulatedServing struct {
	ColdStart time.Duration `json:"coldStart"` // virtual time from placed to ready
	Stuck     bool          `json:"stuck"`     // never becomes ready
}

// Serves reports whether the config may serve the model.
func (c ServingConfig) Serves(model string) bool {
	for _, m := range c.Models {
		if m == "*" || m == model {
			return true
		}
	}
	return false
}

// Workload is what a fleet is asked to keep running: a level, not an order.
type Workload struct {
	Deployment string        `json:"deployment"`
	Model      string        `json:"model"` // model name passed to the server
	Config     ServingConfig `json:"config"`
	Bounds     Bounds        `json:"bounds"`
}

// FleetStatus is what a fleet sees of one deployment.
type FleetStatus struct {
	Desired     int       `json:"desired"`               // what the autoscaler wants, within the bounds
	Scheduled   int       `json:"scheduled"`             // holding a place on hardware: starting, ready, draining, or failed and waiting to restart
	Ready       int       `json:"ready"`                 // answering
	Draining    int       `json:"draining"`              // finishing what they hold
	Unplaced    int       `json:"unplaced"`              // wanted, but no capacity
	Failures    int       `json:"failures"`              // of ready replicas: ended by themselves, or lost their probe; grows as long as the fleet runs
	LastFailure string    `json:"lastFailure,omitempty"` // why the last of them failed
	Message     string    `json:"message"`               // one line for a person
	Replicas    []Replica `json:"replicas"`
}

// Hardware is one instance type of the inventory with its capacity.
type Hardware struct {
	ID                string `json:"id"` // for example 1xnvidia-h100-80gb
	Name              string `json:"name"`
	Description       string `json:"description"`
	GPUType           string `json:"gpuType"`
	GPUCount          int    `json:"gpuCount"` // GPUs of one replica
	GPUMemoryGiB      int    `json:"gpuMemoryGib"`
	PriceCentsPerHour int    `json:"priceCentsPerHour"` // of one replica
	Region            string `json:"region"`
	Capacity          int    `json:"capacity"` // replicas that fit in all; negative for no limit
	Free              int    `json:"free"`     // further replicas that fit now; negative for no limit
}
