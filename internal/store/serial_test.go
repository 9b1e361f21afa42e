package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store/storetest"
)

// world is what the model of a store holds: each endpoint's version, and who wrote it.
type world map[string]rollout.Endpoint

// after is the world after a change, or the error that it is refused with. A new row's
// name is its id.
func (w world) after(c rollout.Change) (world, error) {
	next := maps.Clone(w)
	for _, ref := range c.Require {
		if next[ref.ID].Version != ref.Version {
			return nil, rollout.ErrConflict
		}
	}
	for _, ref := range c.Delete {
		if next[ref.ID].Version != ref.Version {
			return nil, rollout.ErrConflict
		}
		delete(next, ref.ID)
	}
	for _, ep := range c.Endpoints {
		switch now, ok := next[ep.ID]; {
		case ep.Version == 0 && ok:
			return nil, rollout.ErrExists
		case now.Version != ep.Version:
			return nil, rollout.ErrConflict
		}
		ep.Version++
		next[ep.ID] = ep
	}
	return next, nil
}

// drawChange makes a change of a few endpoints with versions that some order of the
// others may fit.
func drawChange(t *rapid.T, n int) rollout.Change {
	c := rollout.Change{Events: []rollout.Event{{EndpointID: "feed", Type: "x", Message: fmt.Sprint(n)}}}
	for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "rows")[:rapid.IntRange(1, 3).Draw(t, "count")] {
		ep := storetest.Endpoint(fmt.Sprintf("ep_%d", i), fmt.Sprintf("ep_%d", i))
		ep.Version, ep.Generation = rapid.Int64Range(0, 3).Draw(t, "version"), uint64(n)
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind == 0 && ep.Version > 0:
			c.Delete = append(c.Delete, rollout.Ref{Kind: rollout.KindEndpoint, ID: ep.ID, Version: ep.Version})
		case kind <= 2 && ep.Version > 0:
			c.Require = append(c.Require, rollout.Ref{Kind: rollout.KindEndpoint, ID: ep.ID, Version: ep.Version})
		default:
			c.Endpoints = append(c.Endpoints, ep)
		}
	}
	return c
}

// TestCommitsAtOnceAreAsSomeSerialOrder commits changes that conflict from as many
// goroutines. The feed tells in which order those that were taken were written. In this
// order each must be right, at the end the rows must be what the order makes, and each
// that was refused must be wrong somewhere in it.
func TestCommitsAtOnceAreAsSomeSerialOrder(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	shared := uint64(0)
	place := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		clearEndpoints(t, s)
		changes := make([]rollout.Change, rapid.IntRange(2, 12).Draw(rt, "n"))
		for i := range changes {
			changes[i] = drawChange(rt, i)
		}
		before := s.Written()
		answers := atOnce(t, s, changes)
		after := s.Written()
		shared += (after.Commits - before.Commits) - (after.Transactions - before.Transactions)
		worlds := inOrder(rt, s, changes, answers, &place)
		last := worlds[len(worlds)-1]
		rows, err := s.Endpoints(t.Context())
		require.NoError(rt, err)
		require.Len(rt, rows, len(last))
		for _, ep := range rows {
			require.Equal(rt, []uint64{uint64(last[ep.ID].Version), last[ep.ID].Generation}, []uint64{uint64(ep.Version), ep.Generation})
		}
		for i, err := range answers {
			require.True(rt, err == nil || slices.ContainsFunc(worlds, func(w world) bool {
				_, refusal := w.after(changes[i])
				return refusal != nil && errors.Is(err, refusal)
			}), "change %d was refused and no order explains it: %v", i, err)
		}
	})
	require.Positive(t, shared, "no two commits ever shared a transaction: the test shows nothing")
	t.Logf("measured: %d of %d commits rode in another's transaction", shared, s.Written().Commits)
}

// atOnce commits every change in a goroutine of its own.
func atOnce(t *testing.T, s *store.SQLite, changes []rollout.Change) []error {
	answers := make([]error, len(changes))
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i, c := range changes {
		wg.Go(func() {
			<-gate
			answers[i] = s.Commit(t.Context(), c)
		})
	}
	close(gate)
	wg.Wait()
	return answers
}

// inOrder replays the changes that were taken as the feed says they came, and returns
// every world on the way.
func inOrder(t *rapid.T, s *store.SQLite, changes []rollout.Change, answers []error, place *int64) []world {
	taken := 0
	for _, err := range answers {
		if err == nil {
			taken++
		}
	}
	worlds := []world{{}}
	if taken == 0 {
		return worlds
	}
	rows, _, err := s.Events(t.Context(), rollout.EventQuery{EndpointID: "feed", Limit: taken})
	require.NoError(t, err)
	require.Len(t, rows, taken, "an event of each that was taken")
	slices.Reverse(rows)
	for _, e := range rows {
		var n int
		_, err := fmt.Sscan(e.Message, &n)
		require.NoError(t, err)
		require.NoError(t, answers[n], "an event of one that was refused")
		next, err := worlds[len(worlds)-1].after(changes[n])
		require.NoError(t, err, "change %d was taken where it is wrong", n)
		worlds = append(worlds, next)
	}
	var last int64
	_, err = fmt.Sscanf(rows[len(rows)-1].ID, "evt_%d", &last)
	require.NoError(t, err)
	require.Equal(t, *place+int64(taken), last, "a refused one leaves no event, nor a gap in the feed")
	*place = last
	return worlds
}

func clearEndpoints(t *testing.T, s *store.SQLite) {
	rows, err := s.Endpoints(t.Context())
	require.NoError(t, err)
	var c rollout.Change
	for _, ep := range rows {
		c.Delete = append(c.Delete, rollout.Ref{Kind: rollout.KindEndpoint, ID: ep.ID})
	}
	require.NoError(t, s.Commit(t.Context(), c))
}
