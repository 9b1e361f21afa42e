package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store/storetest"
)

// staysOpen is a store in memory over a restart, which would lose it.
type staysOpen struct {
	*store.SQLite
	closed bool
}

func (s *staysOpen) Close() error {
	s.closed = true
	return nil
}

func (s *staysOpen) Ping(ctx context.Context) error {
	if s.closed {
		return errClosed
	}
	return s.SQLite.Ping(ctx)
}

var errClosed = errors.New("closed for a restart")

func TestTheStoreInMemoryConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		s, err := store.OpenMemory(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return func(*testing.T) storetest.Store { return &staysOpen{SQLite: s} }
	})
}

func TestAClearedStoreIsAsNew(t *testing.T) {
	s, err := store.OpenMemory(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	first := feed(t, s)
	require.NoError(t, s.Clear(t.Context()))
	_, err = s.Endpoint(t.Context(), "ep_a")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	require.Equal(t, first, feed(t, s), "also the events' ids begin anew")
}

// feed writes an endpoint and two events, and reads the events.
func feed(t *testing.T, s *store.SQLite) []rollout.Event {
	t.Helper()
	e := rollout.Event{EndpointID: "ep_a", Type: rollout.EventCreated, Level: rollout.LevelInfo}
	require.NoError(t, s.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{storetest.Endpoint("ep_a", "a")}, Events: []rollout.Event{e, e}}))
	rows, _, err := s.Events(t.Context(), rollout.EventQuery{EndpointID: "ep_a", Limit: 10})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	return rows
}

func TestAStoreInAFileIsNotCleared(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	feed(t, s)
	require.Error(t, s.Clear(t.Context()))
	_, err = s.Endpoint(t.Context(), "ep_a")
	require.NoError(t, err)
}

func BenchmarkCommitInMemory(b *testing.B) {
	s, err := store.OpenMemory(b.Context())
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	require.NoError(b, s.Commit(b.Context(), rollout.Change{Endpoints: []rollout.Endpoint{storetest.Endpoint("ep_a", "a")}, Rollouts: []rollout.Rollout{storetest.Rollout("rol_a", "ep_a", rollout.Running)}}))
	e := rollout.Event{EndpointID: "ep_a", Type: rollout.EventCreated, Level: rollout.LevelInfo}
	for b.Loop() {
		r, err := s.Rollout(b.Context(), "rol_a")
		require.NoError(b, err)
		require.NoError(b, s.Commit(b.Context(), rollout.Change{Rollouts: []rollout.Rollout{r}, Events: []rollout.Event{e}}))
	}
}
