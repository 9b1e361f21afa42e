package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func (a *act) rollout(ctx context.Context) (Done, error) {
	switch a.change.Action {
	case planning.NoOp:
		return a.done(), nil
	case planning.Create:
		return a.createRollout(ctx)
	case planning.Start:
		return a.startRollout(ctx)
	case planning.Steer:
		return a.steerRollout(ctx)
	case planning.Delete:
		return a.deleteRollout(ctx)
	case planning.Replace:
		return a.replaceRollout(ctx)
	case planning.Update:
	}
	return Done{}, a.impossible()
}

// createRollout returns the rollout that a spec asks for: the open one of the same spec,
// one that has ended as a create must not repeat, or a new one in PENDING.
func (a *act) createRollout(ctx context.Context) (Done, error) {
	d := a.change.Declared.Rollout
	endpoint, err := a.resolve(d.Endpoint, "endpoint")
	if err != nil {
		return Done{}, err
	}
	spec, err := a.spec(*d)
	if err != nil {
		return Done{}, err
	}
	asked, digest := wire.SpecToAPI(spec), planning.Digest(spec)
	live, history, err := a.adopt(ctx, endpoint, asked, digest)
	if err != nil || live.ID != "" {
		return a.adopted(live), err
	}
	who, err := a.client.WhoAmI(ctx)
	if err != nil {
		return Done{}, err
	}
	if asked.SourceDeploymentID == "" {
		if asked.SourceDeploymentID, err = planning.SourceIn(history.endpoint, asked.TargetDeploymentID); err != nil {
			return Done{}, fmt.Errorf("%s: the source cannot be inferred: %w", a.change.Address, err)
		}
	}
	if who.Sluice != nil {
		asked.Sluice = a.signed(asked.Sluice, digest)
	}
	made, err := a.post(ctx, endpoint, asked, planning.IdempotencyKey(endpoint, digest, history.newest+" "+history.endpoint.ETag))
	if engineclient.IsConflict(err) { // somebody was faster; it may be our own spec
		if live, _, again := a.adopt(ctx, endpoint, wire.SpecToAPI(spec), digest); again != nil || live.ID != "" {
			return a.adopted(live), again
		}
	}
	if err != nil {
		return Done{}, err
	}
	return Done{ID: made.ID, EndpointID: endpoint, Rollout: &made, Next: planning.Start}, nil
}

// spec is the declared spec with its references resolved.
func (a *act) spec(d declaration.Rollout) (rollout.Spec, error) {
	refs := map[declaration.Ref]string{}
	for address, id := range a.ids {
		refs[declaration.Ref{Address: address, Attribute: "id"}] = id
	}
	s, err := d.Resolve(refs)
	if err != nil {
		return s, &NotKnown{err}
	}
	return s, nil
}

// signed adds whose spec it is.
func (a *act) signed(x *api.SpecExtra, digest string) *api.SpecExtra {
	var out api.SpecExtra
	if x != nil {
		out = *x
	}
	out.Digest, out.Origin = digest, a.by.Origin
	return &out
}

func (a *act) adopted(live api.Rollout) Done {
	done := Done{ID: live.ID, EndpointID: live.EndpointID, Rollout: &live, Adopted: true}
	if live.State == engineclient.StatePending {
		done.Next = planning.Start
	}
	return done
}

// past is what came before on an endpoint. Together with the endpoint's etag, which every
// rollout changes, it tells a deliberate new start of an old spec from a repeated request.
type past struct {
	newest   string
	endpoint api.Endpoint
}

// adopt looks for what a create would make. One that is under way for another spec is *Held.
func (a *act) adopt(ctx context.Context, endpoint string, spec api.RolloutSpec, digest string) (api.Rollout, past, error) {
	all, err := engineclient.Collect(a.client.EveryRollout(ctx, endpoint))
	if err != nil {
		return api.Rollout{}, past{}, err
	}
	var p past
	for _, live := range all {
		if !engineclient.Terminal(live.State) {
			if planning.SameRollout(live, spec, digest) {
				return live, p, nil
			}
			return api.Rollout{}, p, &Held{EndpointID: endpoint, By: live}
		}
		p.newest = max(p.newest, live.CreatedAt.UTC().Format(time.RFC3339Nano)+" "+live.ID)
	}
	if p.endpoint, err = a.client.GetEndpoint(ctx, endpoint); err != nil {
		return api.Rollout{}, p, err
	}
	ours := slices.DeleteFunc(all, func(r api.Rollout) bool { return engineclient.Terminal(r.State) && slices.Contains(a.by.History, r.ID) })
	if same, ok := planning.Made(p.endpoint, ours, spec, digest); ok {
		return same, p, nil
	}
	return api.Rollout{}, p, nil
}

// post creates. An idempotency key whose rollout was deleted since answers with 404; the
// next key is then a new start.
func (a *act) post(ctx context.Context, endpoint string, spec api.RolloutSpec, key string) (api.Rollout, error) {
	made, err := a.client.CreateRollout(ctx, endpoint, spec, key)
	for n := 2; n <= 4 && engineclient.IsNotFound(err); n++ {
		if _, gone := a.client.GetEndpoint(ctx, endpoint); gone != nil {
			return made, err
		}
		made, err = a.client.CreateRollout(ctx, endpoint, spec, fmt.Sprintf("%s-%d", key, n))
	}
	return made, err
}

func (a *act) startRollout(ctx context.Context) (Done, error) {
	live, err := a.client.GetRollout(ctx, a.change.EndpointID, a.change.ID)
	if err != nil {
		return Done{}, err
	}
	done := Done{ID: live.ID, EndpointID: live.EndpointID, Rollout: &live, Adopted: live.State != engineclient.StatePending}
	if done.Adopted {
		return done, nil
	}
	live, err = a.client.StartRollout(ctx, live.EndpointID, live.ID)
	if err != nil {
		done.Next = planning.Start
	}
	return done, err
}

// deleteRollout deletes the record of a rollout that is over or never started.
func (a *act) deleteRollout(ctx context.Context) (Done, error) {
	done := Done{ID: a.change.ID, EndpointID: a.change.EndpointID}
	live, err := a.client.GetRollout(ctx, a.change.EndpointID, a.change.ID)
	if engineclient.IsNotFound(err) {
		done.Adopted = true
		return done, nil
	}
	if err != nil {
		return done, err
	}
	if !engineclient.Terminal(live.State) && live.State != engineclient.StatePending {
		return done, &Held{EndpointID: live.EndpointID, By: live}
	}
	err = a.client.DeleteRollout(ctx, live.EndpointID, live.ID, live.ETag)
	if engineclient.IsNotFound(err) {
		err = nil
	}
	return done, err
}

// replaceRollout makes another rollout in the place of one of another spec. The record of
// one that is over stays; one that never started is taken back; one that is under way is
// frozen first when destroy_behavior says so.
func (a *act) replaceRollout(ctx context.Context) (Done, error) {
	live, err := a.client.GetRollout(ctx, a.change.EndpointID, a.change.ID)
	switch {
	case engineclient.IsNotFound(err), err == nil && engineclient.Terminal(live.State):
		return a.createRollout(ctx)
	case err != nil:
		return Done{}, err
	case live.State == engineclient.StatePending:
		if err := a.client.DeleteRollout(ctx, live.EndpointID, live.ID, live.ETag); err != nil && !engineclient.IsNotFound(err) {
			return Done{}, err
		}
		return a.createRollout(ctx)
	case a.change.Declared.Rollout.DestroyBehavior.Value != "cancel":
		return Done{}, &Held{EndpointID: live.EndpointID, By: live}
	}
	if live.State != engineclient.StateCancelling {
		live, err = a.client.CancelRollout(ctx, live.EndpointID, live.ID, api.Control{ETag: live.ETag, Reason: "replaced by another spec with destroy_behavior = cancel (" + a.by.Origin + ")"})
	}
	return Done{ID: live.ID, EndpointID: live.EndpointID, Rollout: &live, Again: true}, err
}

// Moved is the refusal of a control because the rollout is not where the plan showed it.
type Moved struct{ Now api.Rollout }

func (m *Moved) Error() string {
	return fmt.Sprintf("rollout %s is not where the plan showed it any more: it is %s. Plan again to see why, and decide on that", m.Now.ID, engineclient.Short(m.Now.State))
}

// steerRollout sends a control once. A park that came since the plan is seen by somebody
// before it is lifted or passed over. The engine moves on by itself, in bursts of a few
// writes, so a stale etag is no conflict yet.
func (a *act) steerRollout(ctx context.Context) (Done, error) {
	const tries = 9
	for try := 1; ; try++ {
		live, err := a.client.GetRollout(ctx, a.change.EndpointID, a.change.ID)
		if err != nil {
			return Done{}, err
		}
		done := Done{ID: live.ID, EndpointID: live.EndpointID, Rollout: &live, Adopted: true}
		last := live.CurrentStep != nil && *live.CurrentStep == live.Status.TotalSteps-1
		if a.change.Control.IsThere(planning.StateOf(live), last) {
			return done, nil
		}
		if a.change.Live != nil && !stands(a.change.Control, *a.change.Live, live) {
			return done, &Moved{live}
		}
		done.Adopted = false
		after, err := a.control(ctx, live)
		if err == nil {
			done.Rollout = &after
		}
		if !engineclient.IsStale(err) || try == tries {
			return done, err
		}
		select {
		case <-ctx.Done():
			return done, errors.Join(err, ctx.Err())
		case <-time.After(10 * time.Millisecond << (try - 1)):
		}
	}
}

// stands reports whether a rollout is still where the plan showed it, as far as that
// matters for a control.
func stands(c planning.Control, was, now api.Rollout) bool {
	state := planning.StateOf(now)
	same := was.State == now.State && stepOf(was) == stepOf(now) && parkedAt(was).Equal(parkedAt(now))
	switch {
	case state.Terminal():
		return false
	case c == planning.SendResume && !same, c == planning.SendPromote && state.Parked() && !same:
		return false
	}
	return true
}

func stepOf(r api.Rollout) int {
	if r.CurrentStep == nil {
		return -1
	}
	return *r.CurrentStep
}

func parkedAt(r api.Rollout) time.Time {
	if r.Status.Condition == nil {
		return time.Time{}
	}
	return r.Status.Condition.ObservedAt.Time
}

func (a *act) control(ctx context.Context, live api.Rollout) (api.Rollout, error) {
	reason := a.by.Origin
	if d := a.change.Declared.Rollout; d != nil && d.Reason.Value != "" {
		reason = d.Reason.Value
	}
	body := api.Control{ETag: live.ETag}
	switch a.change.Control {
	case planning.SendPause:
		body.Reason = reason
		return a.client.PauseRollout(ctx, live.EndpointID, live.ID, body)
	case planning.SendResume:
		return a.client.ResumeRollout(ctx, live.EndpointID, live.ID, body)
	case planning.SendPromote:
		return a.client.PromoteRollout(ctx, live.EndpointID, live.ID, body)
	case planning.SendCancel:
		body.Reason = reason
		return a.client.CancelRollout(ctx, live.EndpointID, live.ID, body)
	case planning.JustWait, planning.Nothing:
	}
	return live, nil
}
