package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// held is a store in a file whose only writing connection the test has in hand, so that
// commits queue behind one that stands at the beginning of its transaction.
func held(t *testing.T) (s *SQLite, release func()) {
	t.Helper()
	s, err := Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	conn, err := s.write.Conn(t.Context())
	require.NoError(t, err)
	return s, func() { require.NoError(t, conn.Close()) }
}

func endpoint(n int) rollout.Endpoint {
	id := fmt.Sprintf("ep_%d", n)
	return rollout.Endpoint{ID: id, ProjectID: "proj_a", Name: id, CreatedAt: time.Unix(1, 0)}
}

// commits starts a commit of each change, one after the other, and returns once the
// first writes and the others queue in this order.
func (s *SQLite) commits(ctx context.Context, t *testing.T, changes ...rollout.Change) (answers func() []error) {
	t.Helper()
	out := make([]error, len(changes))
	var wg sync.WaitGroup
	for i, c := range changes {
		wg.Go(func() { out[i] = s.Commit(ctx, c) })
		s.queued(t, i)
	}
	return func() []error { wg.Wait(); return out }
}

// queued waits until somebody writes and n wait.
func (s *SQLite) queued(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.group.mu.Lock()
		defer s.group.mu.Unlock()
		return s.group.writing && len(s.group.queue) == n
	}, 10*time.Second, 100*time.Microsecond)
}

func TestCommitsThatWaitShareOneTransaction(t *testing.T) {
	s, release := held(t)
	var changes []rollout.Change
	for i := range 20 {
		changes = append(changes, rollout.Change{Endpoints: []rollout.Endpoint{endpoint(i)}})
	}
	answers := s.commits(t.Context(), t, changes...)
	release()
	for _, err := range answers() {
		require.NoError(t, err)
	}
	require.Equal(t, Written{Commits: 20, Transactions: 2}, s.Written(), "the one that found nobody, and the nineteen behind it")
}

func TestOneThatConflictsFailsAlone(t *testing.T) {
	s, release := held(t)
	again := endpoint(1)
	again.Version, again.Generation = 1, 7
	stale := endpoint(1)
	stale.Version, stale.Generation = 1, 8
	answers := s.commits(
		t.Context(), t,
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(0)}},
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(1)}},
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(2), endpoint(1)}}, // the second row is taken
		rollout.Change{Endpoints: []rollout.Endpoint{again}},                    // stands on a neighbour
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(3), stale}},       // overtaken by a neighbour
		rollout.Change{Require: []rollout.Ref{{Kind: rollout.KindEndpoint, ID: "ep_1", Version: 2}}, Endpoints: []rollout.Endpoint{endpoint(4)}},
	)
	release()
	got := answers()
	for _, i := range []int{0, 1, 3, 5} {
		require.NoError(t, got[i], i)
	}
	require.ErrorIs(t, got[2], rollout.ErrExists)
	require.ErrorIs(t, got[4], rollout.ErrConflict)
	rows, err := s.Endpoints(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 3, "nothing is left of the two that were refused")
	one, err := s.Endpoint(t.Context(), "ep_1")
	require.NoError(t, err)
	require.EqualValues(t, []uint64{2, 7}, []uint64{uint64(one.Version), one.Generation})
}

func TestAWaiterThatIsCanceledWritesNothingAndHoldsNobodyUp(t *testing.T) {
	s, release := held(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := s.commits(t.Context(), t, rollout.Change{Endpoints: []rollout.Endpoint{endpoint(0)}})
	gone := make(chan error, 1)
	go func() { gone <- s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{endpoint(1)}}) }()
	s.queued(t, 1)
	last := make(chan error, 1)
	go func() { last <- s.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{endpoint(2)}}) }()
	s.queued(t, 2)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	require.NoError(t, errors.Join(first()...))
	require.NoError(t, <-last)
	rows, err := s.Endpoints(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 2)
}

func TestTheWriterOfAGroupWritesForTheOthersAlsoWhenItIsCanceled(t *testing.T) {
	s, release := held(t)
	first := s.commits(t.Context(), t, rollout.Change{Endpoints: []rollout.Endpoint{endpoint(0)}})
	ctx, cancel := context.WithCancel(t.Context())
	p := &pending{statements: mustEncode(t, endpoint(1)), err: errAbandoned}
	require.False(t, s.group.enter(p), "it queues")
	last := make(chan error, 1)
	go func() { last <- s.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{endpoint(2)}}) }()
	s.queued(t, 2)
	release()
	require.NoError(t, errors.Join(first()...))
	members := <-p.lead
	cancel()
	require.False(t, s.group.leave(p), "too late to leave")
	s.writeGroup(ctx, members)
	require.NoError(t, p.err)
	require.NoError(t, <-last)
}

func mustEncode(t *testing.T, ep rollout.Endpoint) []statement {
	t.Helper()
	out, err := encode(rollout.Change{Endpoints: []rollout.Endpoint{ep}})
	require.NoError(t, err)
	return out
}

// onWriter runs something on the connection that writes, while nobody else has it.
func (s *SQLite) onWriter(t *testing.T, do func(sqlite.HookRegisterer)) {
	t.Helper()
	conn, err := s.write.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Raw(func(c any) error {
		h, ok := c.(sqlite.HookRegisterer)
		require.True(t, ok)
		do(h)
		return nil
	}))
	require.NoError(t, conn.Close())
}

func TestACommitThatTheDatabaseRefusesFailsAllOfItsGroupAndLeavesNothing(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	n := 0
	s.onWriter(t, func(h sqlite.HookRegisterer) {
		h.RegisterCommitHook(func() int32 { n++; return int32(n - 1) }) // the first passes, those after it do not
	})
	conn, err := s.write.Conn(t.Context())
	require.NoError(t, err)
	answers := s.commits(
		t.Context(), t,
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(0)}},
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(1)}},
		rollout.Change{Endpoints: []rollout.Endpoint{endpoint(2)}},
	)
	require.NoError(t, conn.Close())
	got := answers()
	require.NoError(t, got[0])
	require.Error(t, got[1])
	require.Error(t, got[2])
	rows, err := s.Endpoints(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 1)
	s.onWriter(t, func(h sqlite.HookRegisterer) { h.RegisterCommitHook(nil) })
	require.NoError(t, s.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{endpoint(1)}}), "the writer is free")
}

func TestAFullDiskInAGroupKeepsAllOrNothingOfEach(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	pages := func(limit string) {
		var n int
		require.NoError(t, s.write.QueryRowContext(t.Context(), "PRAGMA max_page_count = "+limit).Scan(&n))
	}
	var used int
	require.NoError(t, s.write.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&used))
	pages(fmt.Sprint(used + 8))
	conn, err := s.write.Conn(t.Context())
	require.NoError(t, err)
	var changes []rollout.Change
	for i := range 12 {
		ep := endpoint(i)
		ep.Visibility = strings.Repeat("x", 20_000)
		changes = append(changes, rollout.Change{Endpoints: []rollout.Endpoint{ep}, Events: []rollout.Event{{EndpointID: ep.ID, Type: "x"}}})
	}
	answers := s.commits(t.Context(), t, changes...)
	require.NoError(t, conn.Close())
	full := 0
	for i, err := range answers() {
		_, readErr := s.Endpoint(t.Context(), changes[i].Endpoints[0].ID)
		events, _, _ := s.Events(t.Context(), rollout.EventQuery{EndpointID: changes[i].Endpoints[0].ID, Limit: 9})
		if err == nil {
			require.NoError(t, readErr)
			require.Len(t, events, 1)
			continue
		}
		full++
		require.ErrorIs(t, err, rollout.ErrUnavailable)
		require.ErrorIs(t, readErr, rollout.ErrNotFound)
		require.Empty(t, events)
	}
	require.Positive(t, full)
	pages("1000000")
	require.NoError(t, s.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{endpoint(99)}}))
}
