package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Fleet runs the replicas of deployments. Every call states a level, so doing it
// twice is doing it once, and returns without waiting for replicas to follow.
type Fleet interface {
	// Ensure keeps the workload running from now on. The desired count moves into
	// the new bounds and otherwise stays; bounds 0/0 stop every replica. A changed
	// model or config counts for replicas that start later: what serves is not
	// touched.
	Ensure(ctx context.Context, w rollout.Workload) error
	// Remove ends every replica of the deployment and forgets it once they are gone.
	Remove(ctx context.Context, deployment string) error
	// Observe tells what runs. A deployment that the fleet does not know has nothing.
	Observe(ctx context.Context, deployment string) (rollout.FleetStatus, error)
	// Hardware lists the inventory with its capacity and what is free of it.
	Hardware(ctx context.Context) ([]rollout.Hardware, error)
	// SetDesired is the autoscaler's wish, moved into the bounds. It returns
	// ErrUnknownDeployment for one that was never ensured.
	SetDesired(ctx context.Context, deployment string, n int) error
	// Subscribe calls notify after every change of the deployment's replicas. It
	// must not block; it may call Observe. Several changes may come as one call.
	Subscribe(notify func(deployment string)) (cancel func())
	// Close ends the fleet's own work. What happens to the replicas is the driver's
	// configuration. When ctx ends first they are stopped without a drain.
	Close(ctx context.Context) error
}

// Errors that the drivers share.
var (
	ErrUnknownDeployment = errors.New("the fleet does not know this deployment")
	ErrUnknownReplica    = errors.New("the fleet does not know this replica")
	ErrClosed            = errors.New("the fleet is closed")
)

// Quiesce empties a replica before it is stopped: no new request reaches it, and
// those in flight end or ctx does. It is the gateway's part of a drain.
type Quiesce func(ctx context.Context, r rollout.Replica) error

// Await runs the hook for at most limit. A nil hook has nothing in flight; one
// that does not heed its context is not waited for beyond it.
func (q Quiesce) Await(ctx context.Context, r rollout.Replica, limit time.Duration) error {
	if q == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- q(ctx, r) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WithDefaults fills the fields of a serving config that were left zero.
func WithDefaults(c rollout.ServingConfig) rollout.ServingConfig {
	fill(&c.ColdStart, 10*time.Minute)
	fill(&c.DrainTimeout, 600*time.Second)
	fill(&c.StopTimeout, 30*time.Second)
	fill(&c.Probe.Interval, time.Second)
	fill(&c.Probe.Timeout, 2*time.Second)
	fill(&c.Probe.Path, "/health")
	fill(&c.Probe.Status, 200)
	fill(&c.Probe.Failures, 3)
	return c
}

// fill sets a field that is zero.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
