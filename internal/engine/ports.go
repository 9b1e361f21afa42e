package engine

import (
	"context"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Store keeps the records. Commit is all or nothing; its errors and those of the
// readers wrap rollout.ErrNotFound, ErrConflict and ErrExists. Once another engine has
// taken the store over, Commit and Held fail with rollout.ErrFenced for good.
type Store interface {
	Commit(ctx context.Context, c rollout.Change) error
	Endpoint(ctx context.Context, id string) (rollout.Endpoint, error)
	Endpoints(ctx context.Context) ([]rollout.Endpoint, error)
	Deployment(ctx context.Context, id string) (rollout.Deployment, error)
	Deployments(ctx context.Context, endpoint string) ([]rollout.Deployment, error)
	Rollout(ctx context.Context, id string) (rollout.Rollout, error)
	Rollouts(ctx context.Context, endpoint string) ([]rollout.Rollout, error)
	OpenRollouts(ctx context.Context) ([]rollout.Rollout, error)
	Events(ctx context.Context, q rollout.EventQuery) ([]rollout.Event, int64, error)
	Answer(ctx context.Context, key string) (rollout.Answer, error)
	Keys(ctx context.Context) ([]rollout.Key, error)
	KeyHashed(ctx context.Context, hash string) (rollout.Key, error)
	Ping(ctx context.Context) error
	Held(ctx context.Context) error
}

// Fleet runs replicas. Ensure and Remove state a level and return without waiting.
type Fleet interface {
	Ensure(ctx context.Context, w rollout.Workload) error
	Remove(ctx context.Context, deployment string) error
	Observe(ctx context.Context, deployment string) (rollout.FleetStatus, error)
	Hardware(ctx context.Context) ([]rollout.Hardware, error)
	Subscribe(notify func(deployment string)) (cancel func())
}

// Router serves the routes. Apply replaces one endpoint's route at once; Serving
// tells what is really served.
type Router interface {
	Apply(r rollout.Route) error
	Remove(endpoint string)
	Serving(endpoint string) (rollout.Route, bool)
}

// Meter reads what the data plane measured.
type Meter interface {
	Read(ctx context.Context, q rollout.Query) (rollout.Reading, error)
	Rate(deployment string, window time.Duration) Rate
	Usage(deployment string, from, to time.Time) Usage
	Forget(deployment string) // it is deleted
}

// Entitlement asks whoever keeps the bills whether a project may have so many replicas
// of a deployment. nil is yes, an error that wraps *rollout.Lapse is no, any other error
// is no answer.
type Entitlement interface {
	Check(ctx context.Context, project string, d rollout.Deployment, replicas int) error
}

// Usage sums up what a deployment served in a stretch of time, as far back as the
// meter remembers.
type Usage struct {
	Requests     int64   // that ended, canceled ones included
	ServerErrors int64   // of these
	ErrorRate    float64 // server errors ÷ answered, 0 to 1
	PerSecond    float64
	P50, P99     float64 // milliseconds; 0 without an answer
}

// Rate is how much traffic a deployment had in a recent window.
type Rate struct {
	Requests  int64 // that ended
	PerSecond float64
	Since     time.Time // when the earliest traffic that the meter remembers began; zero when it tells none
}

// LongestWindow is the longest window that a metric rule may have.
const LongestWindow = rollout.LongestWindow

// UsageMemory is how far back Usage reaches at most.
const UsageMemory = 12 * time.Minute
