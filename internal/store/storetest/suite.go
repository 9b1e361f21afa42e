// Package storetest is the conformance suite of stores: what the engine relies on,
// whatever keeps the records.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Store is what every store offers to the engine and its server.
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
	ForgetAnswers(ctx context.Context, before time.Time) error
	Keys(ctx context.Context) ([]rollout.Key, error)
	KeyHashed(ctx context.Context, hash string) (rollout.Key, error)
	SaveSlots(ctx context.Context, slots []rollout.MeterSlot, keep time.Time) error
	Slots(ctx context.Context, since time.Time) ([]rollout.MeterSlot, error)
	Project(ctx context.Context) (rollout.Project, error)
	SaveProject(ctx context.Context, p rollout.Project) error
	Ping(ctx context.Context) error
	Close() error
}

// Opener opens the store of one test; called again it opens the same one, as after
// a restart. The first call finds it empty.
type Opener func(t *testing.T) Store

// Run runs the whole suite. fresh returns an Opener of a store of its own.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, sc := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"a record comes back as it was written", comesBack},
		{"a row that somebody changed since it was read is a conflict", staleIsConflict},
		{"a change is all or nothing", allOrNothing},
		{"a change stands on the rows that it requires", requires},
		{"an endpoint has one open rollout", oneOpenRollout},
		{"names are taken once", namesTakenOnce},
		{"an endpoint does not go while something is on it", endpointWithRows},
		{"lists are newest first and open rollouts oldest first", orders},
		{"two writers at once: one wins each version", twoWriters},
		{"events keep their order and page without loss", eventsPage},
		{"event conditions all hold at once", eventConditions},
		{"an idempotency answer is kept once and forgotten by age", answers},
		{"meter slots are kept once and dropped by age", slots},
		{"keys are found by hash until they are deleted", keys},
		{"a restart finds everything", reopens},
		{"a canceled context writes nothing", canceled},
	} {
		t.Run(sc.name, func(t *testing.T) { sc.run(t, fresh(t)) })
	}
}

func opened(t *testing.T, open Opener) Store {
	t.Helper()
	s := open(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// instant is a moment with nanoseconds, in a zone of its own.
var instant = time.Date(2026, 9, 16, 20, 39, 45, 123456789, time.UTC)

// Endpoint makes a new endpoint's record.
func Endpoint(id, name string) rollout.Endpoint {
	return rollout.Endpoint{ID: id, ProjectID: "proj_a", Name: name, Visibility: "VISIBILITY_PRIVATE", CreatedAt: instant, UpdatedAt: instant}
}

// Rollout makes a new rollout's record.
func Rollout(id, endpoint string, s rollout.State) rollout.Rollout {
	return rollout.Rollout{ID: id, EndpointID: endpoint, ProjectID: "proj_a", State: s, CreatedAt: instant, Steps: []rollout.StepRecord{{State: rollout.StepPending}}}
}

func deployment(id, endpoint, name string) rollout.Deployment {
	return rollout.Deployment{ID: id, EndpointID: endpoint, ProjectID: "proj_a", Name: name, Bounds: rollout.Bounds{Min: 1, Max: 2}, CreatedAt: instant}
}

func commit(t *testing.T, s Store, c rollout.Change) {
	t.Helper()
	require.NoError(t, s.Commit(t.Context(), c))
}
