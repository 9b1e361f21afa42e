package reconciler

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// Each change of a plan is done twice, as after a crash between the effect and its
// outcome: the second time finds what the first one made. E3, E7.
func TestAChangeThatIsDoneAgainMakesNothingTwice(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat")+shift("chat", "1s"))
	ids := planning.Bindings{}
	for _, c := range w.plan(t, set, nil).List {
		first := w.do(t, c, ids)
		again := w.do(t, c, ids)
		require.Equal(t, first.ID, again.ID, c.Address)
		require.False(t, first.Adopted, c.Address)
		require.True(t, again.Adopted, c.Address)
		require.Equal(t, first.Next, again.Next, c.Address)
		ids[c.Address] = first.ID
	}
	endpoint := ids[set.Endpoints[0].Address]
	e, err := w.GetEndpoint(t.Context(), endpoint)
	require.NoError(t, err)
	require.Equal(t, []api.TrafficWeight{{DeploymentID: ids[set.Deployments[0].Address], Weight: 1}}, e.TrafficSplit)

	start := w.plan(t, set, nil).Pending()
	require.Len(t, start, 1)
	require.Equal(t, planning.Start, start[0].Action)
	w.do(t, start[0], ids)
	require.True(t, w.do(t, start[0], ids).Adopted)
	w.await(t, endpoint, start[0].ID, engineclient.StateCompleted)
	require.Empty(t, w.plan(t, set, nil).Pending(), "J3: what the rollout left is not undone")
	all, err := engineclient.Collect(w.EveryRollout(t.Context(), endpoint))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "test", all[0].Sluice.Origin)
}

// C3: a person's cancel is a decision about one spec.
func TestACanceledSpecIsNotMadeAgain(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat")+shift("chat", "600s"))
	w.settle(t, declared(t, house("chat")))
	change, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	made := w.do(t, change, w.plan(t, set, nil).Bindings())
	start, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	w.do(t, start, nil)
	w.await(t, made.EndpointID, made.ID, engineclient.StateStabilizing)
	_, err := w.CancelRollout(t.Context(), made.EndpointID, made.ID, api.Control{Reason: "not today"})
	require.NoError(t, err)
	w.await(t, made.EndpointID, made.ID, engineclient.StateCanceled)
	for range 3 {
		require.Empty(t, w.plan(t, set, nil).Pending())
		require.Equal(t, made.ID, w.do(t, change, w.plan(t, set, nil).Bindings()).ID, "an old plan does not make it again either")
	}
	other := declared(t, house("chat")+shift("chat", "601s"))
	require.Len(t, w.plan(t, other, nil).Pending(), 1, "another spec is another decision")
}

// J11: what a rollout needs is locked until it ends.
func TestADeploymentIsNotTakenAwayUnderARollout(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat")+shift("chat", "600s"))
	w.settle(t, declared(t, house("chat")))
	bound := w.plan(t, set, nil).Bindings()
	change, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	made := w.do(t, change, bound)
	bound[change.Address] = made.ID
	start, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	w.do(t, start, bound)

	removed := declared(t, `resource "sluice_endpoint" "chat" { name = "chat" }`)
	for _, c := range w.plan(t, removed, bound).Pending() {
		require.Equal(t, planning.Delete, c.Action)
		require.Contains(t, c.Blocked, "locked by "+made.ID+" until it ends")
		require.Equal(t, made.ID, c.BlockedBy)
		_, err := Do(t.Context(), w.Client, c, bound, By{Origin: "test"})
		var blocked *Blocked
		require.ErrorAs(t, err, &blocked)
		c.Blocked = "" // a plan of before the start
		_, err = Do(t.Context(), w.Client, c, bound, By{Origin: "test"})
		var held *Held
		require.ErrorAs(t, err, &held, "%s", c.Address)
		require.Equal(t, made.ID, held.By.ID)
	}
	other, _ := w.plan(t, declared(t, house("chat")+shift("chat", "601s")), bound).Find("sluice_rollout.chat")
	require.Equal(t, planning.Replace, other.Action)
	require.Equal(t, made.ID, other.BlockedBy)
	other.Blocked = ""
	var held *Held
	_, err := Do(t.Context(), w.Client, other, bound, By{Origin: "test"})
	require.ErrorAs(t, err, &held)
}

// A park that came after the plan is seen by a person before it is lifted.
func TestAControlIsNotSentToARolloutThatHasMovedOn(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat")+shift("chat", "600s"))
	w.settle(t, declared(t, house("chat")))
	bound := w.plan(t, set, nil).Bindings()
	change, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	made := w.do(t, change, bound)
	start, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	w.do(t, start, bound)
	running := w.await(t, made.EndpointID, made.ID, engineclient.StateStabilizing)
	steer := start
	steer.Action, steer.Control, steer.Live = planning.Steer, planning.SendPause, &running
	w.do(t, steer, bound)
	w.await(t, made.EndpointID, made.ID, engineclient.StatePaused)
	require.True(t, w.do(t, steer, bound).Adopted, "it is paused already")
	steer.Control = planning.SendPromote
	_, err := Do(t.Context(), w.Client, steer, bound, By{Origin: "test"})
	var moved *Moved
	require.ErrorAs(t, err, &moved)
	steer.Control = planning.SendCancel
	w.do(t, steer, bound)
	w.await(t, made.EndpointID, made.ID, engineclient.StateCanceled)
}

func TestWhatIsNotMadeYetIsToldApartFromARefusal(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat"))
	changes := w.plan(t, set, nil)
	_, err := Do(t.Context(), w.Client, changes.List[1], nil, By{Origin: "test"})
	var unknown *NotKnown
	require.ErrorAs(t, err, &unknown)
	w.settle(t, set)
	bound := w.plan(t, set, nil).Bindings()
	gone := planning.Change{Address: declaration.Address{Kind: declaration.DeploymentKind, Name: "x"}, Kind: declaration.DeploymentKind, Action: planning.Delete, ID: "dep_gone", EndpointID: bound[set.Endpoints[0].Address]}
	require.True(t, w.do(t, gone, nil).Adopted)
	gone.Protected = true
	var blocked *Blocked
	_, err = Do(t.Context(), w.Client, gone, nil, By{Origin: "test"})
	require.True(t, errors.As(err, &blocked))
}

// J1: what another one reconciles is not written, and its owner is named.
func TestWhatAnotherOwnerReconcilesIsLeftToIt(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat")+shift("chat", "600s"))
	bound := w.settle(t, declared(t, house("chat")))
	_, err := w.ClaimEndpoint(t.Context(), bound[set.Endpoints[0].Address], "infra/voice")
	require.NoError(t, err)
	for self, blocked := range map[string]bool{"": true, "infra/chat": true, "infra/voice": false} {
		l := NewLive(w.Client)
		require.NoError(t, l.Refresh(t.Context()))
		standing, err := l.Standing(t.Context(), set, nil)
		require.NoError(t, err)
		if standing.Endpoints[0].Owner == self {
			standing.Endpoints[0].Owner = ""
		}
		changes, err := planning.Compare(set, standing, nil)
		require.NoError(t, err)
		require.Len(t, changes.Pending(), 1)
		require.Equal(t, blocked, changes.Pending()[0].Blocked != "", "as %q", self)
		if blocked {
			require.Contains(t, changes.Pending()[0].Blocked, "infra/voice")
		}
	}
}
