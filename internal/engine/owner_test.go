package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// owners reads an endpoint's owner and what its feed says of it, oldest first.
func (w *world) owners(id string) (owner string, feed []string) {
	w.t.Helper()
	ep, err := w.Endpoint(w.t.Context(), id)
	require.NoError(w.t, err)
	if ep.Owner != nil {
		owner = ep.Owner.ID
	}
	events, _, err := w.Store.Events(w.t.Context(), rollout.EventQuery{EndpointID: id, Limit: 1000})
	require.NoError(w.t, err)
	for _, e := range events {
		if strings.HasPrefix(string(e.Type), "endpoint.owner") {
			feed = append([]string{string(e.Type) + ": " + e.Message}, feed...)
		}
	}
	return owner, feed
}

// J1: two reconcilers want one endpoint. The second is refused with the name of the first,
// and a hundred polls of both write nothing more.
func TestJ1TwoReconcilersOfOneEndpointSeeEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ep, err := w.CreateEndpoint(t.Context(), w.alice, "owned", "")
		require.NoError(t, err)
		claim := func(id string) error {
			_, err := w.ChangeOwner(t.Context(), w.alice, ep.ID, "", engine.OwnerChange{Claim: id})
			return err
		}
		require.NoError(t, claim("reconciler-a"))
		before, err := w.Endpoint(t.Context(), ep.ID)
		require.NoError(t, err)
		for range 100 {
			require.NoError(t, claim("reconciler-a"))
			refusedAs(t, claim("reconciler-b"), engine.Locked, ep.ID, `owned by "reconciler-a" since`, `not by "reconciler-b"`, "force")
		}
		after, err := w.Endpoint(t.Context(), ep.ID)
		require.NoError(t, err)
		require.Equal(t, before, after, "no write")
		owner, feed := w.owners(ep.ID)
		require.Equal(t, "reconciler-a", owner)
		require.Equal(t, []string{"endpoint.owner_claimed: owner is now reconciler-a"}, feed)
	})
}

func TestAnEndpointIsReleasedByItsOwnerAndTakenByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ep, err := w.CreateEndpoint(t.Context(), w.alice, "owned", "")
		require.NoError(t, err)
		change := func(c engine.OwnerChange) error {
			_, err := w.ChangeOwner(t.Context(), w.alice, ep.ID, "", c)
			return err
		}
		require.NoError(t, change(engine.OwnerChange{Release: "a"}), "nobody's is released already")
		require.NoError(t, change(engine.OwnerChange{Claim: "a"}))
		refusedAs(t, change(engine.OwnerChange{Release: "b"}), engine.Locked, `owned by "a"`)
		require.NoError(t, change(engine.OwnerChange{Claim: "b", Force: &engine.Force{Reason: "a is gone"}}))
		require.NoError(t, change(engine.OwnerChange{Release: "b"}))
		require.NoError(t, change(engine.OwnerChange{Claim: "c", Force: &engine.Force{Reason: "not needed"}}))
		require.NoError(t, change(engine.OwnerChange{Release: "d", Force: &engine.Force{Reason: "c is gone"}}))
		owner, feed := w.owners(ep.ID)
		require.Empty(t, owner)
		require.Equal(t, []string{
			"endpoint.owner_claimed: owner is now a",
			"endpoint.owner_taken: alice took it from its owner a: a is gone",
			"endpoint.owner_released: owner b has released it",
			"endpoint.owner_claimed: owner is now c",
			"endpoint.owner_taken: alice took it from its owner c: c is gone",
		}, feed)
	})
}

func TestAnOwnerThatIsNoneIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ep, err := w.CreateEndpoint(t.Context(), w.alice, "owned", "")
		require.NoError(t, err)
		for _, c := range []engine.OwnerChange{
			{}, {Claim: "a", Release: "a"}, {Claim: "a\nb"}, {Claim: "a\u202e"}, {Claim: "\xff"}, {Claim: strings.Repeat("a", 201)},
			{Claim: "a", Force: &engine.Force{Reason: " "}}, {Claim: "a", Force: &engine.Force{Reason: strings.Repeat("x", 501)}},
		} {
			_, err := w.ChangeOwner(t.Context(), w.alice, ep.ID, "", c)
			refusedAs(t, err, engine.Invalid)
		}
		_, err = w.ChangeOwner(t.Context(), w.alice, ep.ID, "stale", engine.OwnerChange{Claim: "a"})
		refusedAs(t, err, engine.Stale)
		_, err = w.ChangeOwner(t.Context(), w.alice, "ep_none", "", engine.OwnerChange{Claim: "a"})
		refusedAs(t, err, engine.NotFound)
		_, feed := w.owners(ep.ID)
		require.Empty(t, feed)
	})
}

func TestAnOwnerChangesNothingOfARolloutThatRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		r := w.begin(s, s.gated(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		for i := range 20 {
			_, err := w.ChangeOwner(t.Context(), w.alice, s.ep.ID, "", engine.OwnerChange{Claim: fmt.Sprint("r", i), Force: &engine.Force{Reason: "in turn"}})
			require.NoError(t, err)
		}
		require.Equal(t, rollout.Completed, w.reach(r, rollout.Completed).State)
		owner, _ := w.owners(s.ep.ID)
		require.Equal(t, "r19", owner, "the rollout's own writes keep it")
	})
}
