package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// From create until its end a rollout holds the endpoint's slot, its split and both
// sides, in whichever state it is.
func TestB5TheSlotAndTheLocksHoldFromCreateToEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(2)
		ctx := t.Context()
		third := w.deploy(s.ep.ID, "third", "m/stable", 0)
		locked := func(r rollout.Rollout, state rollout.State) {
			t.Helper()
			synctest.Wait() // what the runner does by itself is done
			before := w.now(r)
			require.Equal(t, state, before.State)
			second := s.canary(100)
			second.Target = third.ID
			_, err := w.CreateRollout(ctx, w.alice, s.ep.ID, second)
			refusedAs(t, err, engine.Locked, r.ID, string(state))
			_, err = w.UpdateEndpoint(ctx, w.alice, s.ep.ID, "", engine.EndpointChange{Split: &[]rollout.Weight{}})
			refusedAs(t, err, engine.Locked, "cannot update traffic_split while rollout", r.ID)
			zero := 0
			for id, side := range map[string]string{s.source.ID: "source", s.target.ID: "target"} {
				refusedAs(t, w.DeleteDeployment(ctx, w.alice, s.ep.ID, id, ""), engine.Locked, r.ID, side)
				_, err = w.UpdateDeployment(ctx, w.alice, s.ep.ID, id, "", engine.DeploymentChange{Min: &zero, Max: &zero})
				refusedAs(t, err, engine.Precondition, r.ID, side)
			}
			refusedAs(t, w.DeleteEndpoint(ctx, w.alice, s.ep.ID, ""), engine.Precondition)
			require.Equal(t, before, w.now(r), "a refusal writes nothing")
		}
		control := func(r rollout.Rollout, c engine.Control) {
			t.Helper()
			_, err := w.ControlRollout(ctx, w.alice, s.ep.ID, r.ID, "", c)
			require.NoError(t, err)
		}
		r, err := w.CreateRollout(ctx, w.alice, s.ep.ID, s.gated(50, 100))
		require.NoError(t, err)
		locked(r, rollout.Pending)
		_, err = w.StartRollout(ctx, w.alice, s.ep.ID, r.ID)
		require.NoError(t, err)
		locked(r, rollout.Running)
		w.phase(r, 0, rollout.PhaseSoaking)
		locked(r, rollout.Stabilizing)
		control(r, w.Pause(""))
		w.reach(r, rollout.Paused)
		locked(r, rollout.Paused)
		w.meter.mu.Lock()
		w.meter.read = func(rollout.Query) (rollout.Reading, error) { return rollout.Reading{}, errDown }
		w.meter.mu.Unlock()
		control(r, w.Resume())
		w.reach(r, rollout.SystemPaused)
		require.Equal(t, rollout.MetricsUnavailable, w.now(r).Condition.Category)
		locked(r, rollout.SystemPaused)
		// Bounds stay editable, within the ceiling.
		five := 5
		_, err = w.UpdateDeployment(ctx, w.alice, s.ep.ID, s.target.ID, "", engine.DeploymentChange{Max: &five})
		require.NoError(t, err)
		control(r, w.Cancel("enough"))
		w.reach(r, rollout.Canceled)

		_, err = w.UpdateEndpoint(ctx, w.alice, s.ep.ID, "", engine.EndpointChange{Split: &[]rollout.Weight{{Deployment: s.source.ID, Weight: 2}}})
		require.NoError(t, err)
		refusedAs(t, w.DeleteDeployment(ctx, w.alice, s.ep.ID, s.source.ID, ""), engine.Precondition, "traffic split")
		refusedAs(t, w.DeleteDeployment(ctx, w.alice, s.ep.ID, s.target.ID, ""), engine.Precondition, "not stopped")
		require.NoError(t, w.DeleteDeployment(ctx, w.alice, s.ep.ID, third.ID, ""))
		require.Equal(t, []string{third.ID}, w.meter.forgotten)
		zero := 0
		_, err = w.UpdateDeployment(ctx, w.alice, s.ep.ID, s.target.ID, "", engine.DeploymentChange{Min: &zero})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, w.DeleteDeployment(ctx, w.alice, s.ep.ID, s.target.ID, ""))
	})
}

func TestAPendingRolloutIsDeletedNotCanceled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		ctx := t.Context()
		r, err := w.CreateRollout(ctx, w.alice, s.ep.ID, s.canary(50, 100))
		require.NoError(t, err)
		for name, c := range map[string]engine.Control{"cancel": w.Cancel("x"), "pause": w.Pause(""), "resume": w.Resume(), "promote": w.Promote()} {
			_, err := w.ControlRollout(ctx, w.alice, s.ep.ID, r.ID, "", c)
			refusedAs(t, err, engine.Precondition, "cannot "+name, "PENDING", "delete it")
		}
		require.NoError(t, w.DeleteRollout(ctx, w.alice, s.ep.ID, r.ID, ""))
		refusedAs(t, w.DeleteRollout(ctx, w.alice, s.ep.ID, r.ID, ""), engine.NotFound)
		r = w.begin(s, s.canary(50, 100)) // the slot is free
		refusedAs(t, w.DeleteRollout(ctx, w.alice, s.ep.ID, r.ID, ""), engine.Precondition, "cancel it first")
		r = w.reach(r, rollout.Completed)
		for _, c := range []engine.Control{w.Cancel("x"), w.Pause(""), w.Resume(), w.Promote()} {
			_, err := w.ControlRollout(ctx, w.alice, s.ep.ID, r.ID, "", c)
			refusedAs(t, err, engine.Precondition, "COMPLETED", "it is over")
		}
		_, err = w.StartRollout(ctx, w.alice, s.ep.ID, r.ID)
		refusedAs(t, err, engine.Precondition, "cannot start", "it is over")
		require.NoError(t, w.DeleteRollout(ctx, w.alice, s.ep.ID, r.ID, ""))
		require.InDelta(t, 1, w.shares(s.ep.ID)[s.target.ID], 1e-9, "the split stays")
	})
}

func TestStartIsIdempotentAndValidatesAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		ctx := t.Context()
		r, err := w.CreateRollout(ctx, w.alice, s.ep.ID, s.canary(50, 100))
		require.NoError(t, err)
		require.Equal(t, 1, r.Journey.Source)
		three := 3
		_, err = w.UpdateDeployment(ctx, w.alice, s.ep.ID, s.source.ID, "", engine.DeploymentChange{Min: &three})
		require.NoError(t, err)
		w.ready(s.ep.ID, s.source.ID, 3)
		r, err = w.StartRollout(ctx, w.alice, s.ep.ID, r.ID)
		require.NoError(t, err)
		require.Equal(t, 3, r.Journey.Source, "the journey is made on what stands at the start")
		began := r.StartedAt
		time.Sleep(time.Minute)
		r, err = w.StartRollout(ctx, w.alice, s.ep.ID, r.ID)
		require.NoError(t, err)
		require.Equal(t, began, r.StartedAt)
		started := 0
		for _, k := range types(w.feed(r)) {
			if k == "rollout.started" {
				started++
			}
		}
		require.Equal(t, 1, started)
	})
}

func TestStartIsRefusedWhenTheSourceNoLongerServes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		r, err := w.CreateRollout(t.Context(), w.alice, s.ep.ID, s.canary(50, 100))
		require.NoError(t, err)
		require.NoError(t, w.fleet.Stick(s.source.ID))
		status, err := w.fleet.Observe(t.Context(), s.source.ID)
		require.NoError(t, err)
		require.NoError(t, w.fleet.Kill(status.Replicas[0].ID))
		_, err = w.StartRollout(t.Context(), w.alice, s.ep.ID, r.ID)
		refusedAs(t, err, engine.Precondition, s.source.ID)
		require.Equal(t, rollout.Pending, w.now(r).State)
	})
}

func TestEligibility(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		ctx := t.Context()
		other, err := w.CreateEndpoint(ctx, w.alice, "other", "")
		require.NoError(t, err)
		stranger := w.deploy(other.ID, "stable", "m/stable", 0)
		create := func(source, target string) error {
			_, err := w.CreateRollout(ctx, w.alice, s.ep.ID, rollout.Spec{Source: source, Target: target, Strategy: rollout.BlueGreen})
			return err
		}
		refusedAs(t, create(s.source.ID, s.source.ID), engine.Invalid, "same deployment")
		refusedAs(t, create(s.source.ID, stranger.ID), engine.Invalid, stranger.ID, "not one of endpoint")
		refusedAs(t, create("dep_none", s.target.ID), engine.Invalid, "dep_none")
		refusedAs(t, create("", s.target.ID), engine.Invalid, "sourceDeploymentId is required")
		refusedAs(t, create(s.target.ID, s.source.ID), engine.Invalid, "no weight")
		_, err = w.CreateRollout(ctx, w.alice, "ep_none", s.canary(100))
		refusedAs(t, err, engine.NotFound)
		ep, err := w.Endpoint(ctx, s.ep.ID)
		require.NoError(t, err)
		require.Empty(t, ep.ActiveRollout, "a refused create holds nothing")
	})
}

// After a cancel at 40 % a ladder has to start above: below is refused at create, at
// the standing share at start, with a warning in the preview before.
func TestAFrozenPair(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(3)
		ctx := t.Context()
		r := w.begin(s, s.canary(40, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		_, err := w.ControlRollout(ctx, w.alice, s.ep.ID, r.ID, "", w.Cancel("enough"))
		require.NoError(t, err)
		w.reach(r, rollout.Canceled)
		require.InDelta(t, 0.4, w.shares(s.ep.ID)[s.target.ID], 1e-9)

		_, err = w.CreateRollout(ctx, w.alice, s.ep.ID, s.canary(30, 100))
		refusedAs(t, err, engine.Invalid, "40")
		p, err := w.PreviewRollout(ctx, s.ep.ID, s.canary(40, 100))
		require.NoError(t, err)
		require.True(t, p.FirstSeed)
		require.NotNil(t, p.Refusal)
		at, err := w.CreateRollout(ctx, w.alice, s.ep.ID, s.canary(40, 100))
		require.NoError(t, err)
		_, err = w.StartRollout(ctx, w.alice, s.ep.ID, at.ID)
		refusedAs(t, err, engine.Precondition, "40")
		require.NoError(t, w.DeleteRollout(ctx, w.alice, s.ep.ID, at.ID, ""))

		p, err = w.PreviewRollout(ctx, s.ep.ID, s.canary())
		require.NoError(t, err)
		require.Equal(t, 40, p.Basis.Seed)
		require.Len(t, p.Journey.Rungs, 2, "of the default ladder only 50 and 100 are above")
		require.Nil(t, p.Refusal)
		require.Equal(t, p.Basis.SourceReplicas+p.Basis.TargetReplicas, p.Journey.FinalTarget)
		on := w.begin(s, s.canary())
		w.reach(on, rollout.Completed)
		p, err = w.PreviewRollout(ctx, s.ep.ID, s.canary(100))
		require.NoError(t, err)
		require.NotNil(t, p.Refusal, "the target carries everything already")
	})
}

func TestPreviewWritesNothingAndTellsALock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(4)
		ctx := t.Context()
		p, err := w.PreviewRollout(ctx, s.ep.ID, s.canary(25, 100))
		require.NoError(t, err)
		require.Nil(t, p.Refusal)
		require.Equal(t, 4, p.Journey.LandingMin)
		require.Equal(t, 4, p.Journey.LandingMax)
		require.Equal(t, 96, p.Free)
		all, err := w.disk.Rollouts(ctx, s.ep.ID)
		require.NoError(t, err)
		require.Empty(t, all)
		r, err := w.CreateRollout(ctx, w.alice, s.ep.ID, s.canary(25, 100))
		require.NoError(t, err)
		p, err = w.PreviewRollout(ctx, s.ep.ID, s.canary(25, 100))
		require.NoError(t, err)
		require.NotNil(t, p.Refusal)
		require.Contains(t, p.Refusal.Message, r.ID)
	})
}

func TestIdempotencyKeys(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		ctx := t.Context()
		by := engine.Caller{Name: "alice", IdempotencyKey: "k1", Digest: "body"}
		r, err := w.CreateRollout(ctx, by, s.ep.ID, s.canary(50, 100))
		require.NoError(t, err)
		again, err := w.CreateRollout(ctx, by, s.ep.ID, s.canary(50, 100))
		require.NoError(t, err)
		require.Equal(t, r, again)
		by.Digest = "another body"
		_, err = w.CreateRollout(ctx, by, s.ep.ID, s.canary(25, 100))
		refusedAs(t, err, engine.Invalid, "another request")

		by = engine.Caller{Name: "alice", IdempotencyKey: "k2", Digest: "body"}
		ep, err := w.CreateEndpoint(ctx, by, "fresh", "")
		require.NoError(t, err)
		same, err := w.CreateEndpoint(ctx, by, "fresh", "")
		require.NoError(t, err)
		require.Equal(t, ep, same)
		_, err = w.CreateEndpoint(ctx, w.alice, "fresh", "")
		refusedAs(t, err, engine.Exists, "fresh")
	})
}

func TestStaleETagsAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		ctx := t.Context()
		_, err := w.UpdateEndpoint(ctx, w.alice, s.ep.ID, "1", engine.EndpointChange{Split: &[]rollout.Weight{}})
		refusedAs(t, err, engine.Stale, "read it again")
		two := 2
		_, err = w.UpdateDeployment(ctx, w.alice, s.ep.ID, s.source.ID, "99", engine.DeploymentChange{Min: &two})
		refusedAs(t, err, engine.Stale)
		refusedAs(t, w.DeleteDeployment(ctx, w.alice, s.ep.ID, s.target.ID, "99"), engine.Stale)
		refusedAs(t, w.DeleteEndpoint(ctx, w.alice, s.ep.ID, "99"), engine.Stale)
		r := w.begin(s, s.canary(50, 100))
		w.phase(r, 0, rollout.PhaseSoaking)
		_, err = w.ControlRollout(ctx, w.alice, s.ep.ID, r.ID, rollout.ETag(r.Version), w.Cancel("x"))
		refusedAs(t, err, engine.Stale)
		_, err = w.UpdateEndpoint(ctx, w.alice, s.ep.ID, "", engine.EndpointChange{})
		refusedAs(t, err, engine.Invalid, "no fields to update")
		_, err = w.UpdateDeployment(ctx, w.alice, s.ep.ID, s.source.ID, "", engine.DeploymentChange{})
		refusedAs(t, err, engine.Invalid, "no fields to update")
	})
}

func TestTheLastAdministratorsKeyStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		create := func(name string, scopes ...rollout.Scope) (rollout.Key, string) {
			k, secret, err := w.NewKey(name, scopes)
			require.NoError(t, err)
			require.NoError(t, w.SaveKey(ctx, k))
			return k, secret
		}
		admin, _ := create("admin", rollout.ScopeAdmin)
		reader, secret := create("reader", rollout.ScopeRead)
		_, ok, err := w.Authenticate(ctx, secret)
		require.NoError(t, err)
		require.True(t, ok)
		refusedAs(t, w.DeleteKey(ctx, admin.ID), engine.Precondition, "last one")
		require.NoError(t, w.DeleteKey(ctx, reader.ID))
		_, ok, err = w.Authenticate(ctx, secret)
		require.NoError(t, err)
		require.False(t, ok)
		create("second", rollout.ScopeAdmin)
		require.NoError(t, w.DeleteKey(ctx, admin.ID))
		refusedAs(t, w.DeleteKey(ctx, admin.ID), engine.NotFound)
		_, _, err = w.NewKey(" ", []rollout.Scope{rollout.ScopeRead})
		refusedAs(t, err, engine.Invalid)
		twice, _, err := w.NewKey("x", []rollout.Scope{rollout.ScopeRead, rollout.ScopeOperate, rollout.ScopeRead})
		require.NoError(t, err)
		require.Equal(t, []rollout.Scope{rollout.ScopeRead, rollout.ScopeOperate}, twice.Scopes, "a scope is kept once")
		_, _, err = w.NewKey("x", []rollout.Scope{"root"})
		refusedAs(t, err, engine.Invalid, "root")
	})
}

func TestBoundsAndConfigsAreChecked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.settle(1)
		ctx := t.Context()
		create := func(spec engine.DeploymentSpec) error {
			_, err := w.CreateDeployment(ctx, w.alice, s.ep.ID, spec, engine.OnlyValidate)
			return err
		}
		one := rollout.Bounds{Min: 1, Max: 1}
		require.NoError(t, create(engine.DeploymentSpec{Name: "x", Model: "m/stable", Bounds: one}))
		require.NoError(t, create(engine.DeploymentSpec{Name: "x", Config: stableConfig, Bounds: one}))
		refusedAs(t, create(engine.DeploymentSpec{Name: "x", Model: "m/none", Bounds: one}), engine.Invalid, stableConfig)
		refusedAs(t, create(engine.DeploymentSpec{Name: "x", Config: "cr_none", Bounds: one}), engine.Invalid, "not declared")
		refusedAs(t, create(engine.DeploymentSpec{Name: "x", Config: stableConfig, Model: "m/candidate", Bounds: one}), engine.Invalid, "does not serve")
		refusedAs(t, create(engine.DeploymentSpec{Name: "x", Bounds: one}), engine.Invalid, "name a model")
		refusedAs(t, create(engine.DeploymentSpec{Name: "../x", Model: "m/stable", Bounds: one}), engine.Invalid, "not valid")
		for _, b := range []rollout.Bounds{{Min: -1, Max: 1}, {Min: 2, Max: 1}, {Min: 0, Max: 1}, {Min: 1, Max: 1 << 30}} {
			refusedAs(t, create(engine.DeploymentSpec{Name: "x", Model: "m/stable", Bounds: b}), engine.Invalid)
		}
		all, err := w.disk.Deployments(ctx, s.ep.ID)
		require.NoError(t, err)
		require.Len(t, all, 2, "a dry run makes nothing")
		_, err = w.CreateDeployment(ctx, w.alice, s.ep.ID, engine.DeploymentSpec{Name: "stable", Model: "m/stable", Bounds: one}, engine.ForReal)
		refusedAs(t, err, engine.Exists)
	})
}
