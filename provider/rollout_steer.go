package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Values of desired_state.
const (
	wantCompleted = planning.WantCompleted
	wantPaused    = planning.WantPaused
	wantPromoted  = planning.WantPromoted
	wantCanceled  = planning.WantCanceled
)

// steering is what an apply does to a rollout beside waiting for it.
type steering planning.Control

const (
	justWait    = steering(planning.JustWait)
	nothing     = steering(planning.Nothing) // what is wanted is there: not even a wait
	sendPause   = steering(planning.SendPause)
	sendResume  = steering(planning.SendResume)
	sendPromote = steering(planning.SendPromote)
	sendCancel  = steering(planning.SendCancel)
)

// steer decides from the state and what is asked now. refused says why what is asked
// cannot be.
func steer(was, asked rolloutModel) (s steering, refused string) {
	c, refused := planning.ControlFor(planning.Wish{
		ID: was.ID.ValueString(), State: rollout.State(was.State.ValueString()),
		Before: orElse(was.DesiredState.ValueString(), wantCompleted), Want: asked.DesiredState.ValueString(),
		NewToken: !asked.ResumeToken.IsNull() && !asked.ResumeToken.Equal(was.ResumeToken),
		Again:    "leave desired_state out and apply with -replace=ADDRESS",
	})
	return steering(c), refused
}

// tell says in the plan what the apply will send.
func (s steering) tell(was rolloutModel) (title, detail string) {
	id, at := was.ID.ValueString(), fmt.Sprintf("It is %s at step %d of %d with %d%% on the target.", was.State.ValueString(), was.CurrentStep.ValueInt64(), len(was.Journey.Elements()), was.CurrentTrafficPercent.ValueInt64())
	switch s {
	case sendPause:
		return "The apply pauses rollout " + id, at + " The split stays where it is then."
	case sendResume:
		effect := "The park is lifted and the same step goes on; a gate that tripped is judged again on fresh data. If it parks anew before the apply, that park is not lifted."
		return fmt.Sprintf("The apply resumes rollout %s at step %d", id, was.CurrentStep.ValueInt64()), at + " " + effect
	case sendPromote:
		return "The apply promotes rollout " + id + " to its last step", at + " The steps between are skipped, gates and all; the last one runs in full."
	case sendCancel:
		return "The apply cancels rollout " + id, at + " The split freezes as it is served and the rollout is over for good."
	case justWait, nothing:
	}
	return "", ""
}

// isThere reports whether a control would change nothing.
func (s steering) isThere(r api.Rollout) bool {
	last := r.CurrentStep != nil && *r.CurrentStep == r.Status.TotalSteps-1
	return planning.Control(s).IsThere(planning.StateOf(r), last)
}

// stands reports whether a rollout is still where the plan showed it, as far as that
// matters for a control: a park that came since must be seen by somebody before it is
// lifted or passed over.
func (s steering) stands(was rolloutModel, now api.Rollout) error {
	var fresh rolloutModel
	fresh.apply(now)
	state := engineclient.Short(now.State)
	same := was.State.Equal(fresh.State) && was.CurrentStep.Equal(fresh.CurrentStep) && parkedSince(was) == parkedSince(fresh)
	parked := rollout.State(state).Parked()
	switch {
	case engineclient.Terminal(now.State):
		return fmt.Errorf("it is over: %s", state)
	case s == sendResume && !same, s == sendPromote && parked && !same:
		return fmt.Errorf("it is not where the plan showed it any more: %s at step %d. Plan again to see why, and decide on that", state, fresh.CurrentStep.ValueInt64())
	}
	return nil
}

// parkedSince is when the engine parked, as a plan shows it.
func parkedSince(m rolloutModel) string {
	if m.Condition.IsNull() || m.Condition.IsUnknown() {
		return ""
	}
	return m.Condition.Attributes()["observed_at"].String()
}

// send sends a control once. The engine moves on by itself, in bursts of a few writes, so
// a stale etag is no conflict yet: after a moment, doubled each time from 10 ms, the
// rollout is read and judged again. Errors leave the state as it was and the decision to
// be planned anew.
func (r *rolloutResource) send(ctx context.Context, s steering, was, asked rolloutModel, live api.Rollout) (api.Rollout, error) {
	const tries = 9
	for try := 1; ; try++ {
		if s.isThere(live) {
			return live, nil
		}
		if err := s.stands(was, live); err != nil {
			return live, err
		}
		after, err := control(r.engine.client, s)(ctx, live.EndpointID, live.ID, api.Control{ETag: live.ETag, Reason: s.reason(asked)})
		if !engineclient.IsStale(err) || try == tries {
			return after, err
		}
		select {
		case <-ctx.Done():
			return after, err
		case <-time.After(10 * time.Millisecond << (try - 1)):
		}
		if live, err = r.engine.client.GetRollout(ctx, live.EndpointID, live.ID); err != nil {
			return live, err
		}
	}
}

func (s steering) reason(asked rolloutModel) string {
	if s != sendPause && s != sendCancel {
		return ""
	}
	return orElse(asked.Reason.ValueString(), "desired_state in Terraform")
}

type controlCall func(ctx context.Context, endpoint, id string, body api.Control) (api.Rollout, error)

func control(c *engineclient.Client, s steering) controlCall {
	switch s {
	case sendPause:
		return c.PauseRollout
	case sendResume:
		return c.ResumeRollout
	case sendPromote:
		return c.PromoteRollout
	case sendCancel:
		return c.CancelRollout
	case justWait, nothing:
	}
	return func(ctx context.Context, endpoint, id string, _ api.Control) (api.Rollout, error) {
		return c.GetRollout(ctx, endpoint, id)
	}
}

// Values of on_timeout.
const (
	timeoutDetach = "detach"
	timeoutPause  = "pause"
	timeoutCancel = "cancel"
)

// controlWithin bounds what is sent once the time to wait is over.
const controlWithin = 30 * time.Second

// timedOut carries out on_timeout, within a time of its own: the wait's is over. It
// returns what became of the rollout and a sentence about it.
func (r *rolloutResource) timedOut(ctx context.Context, m *rolloutModel, live api.Rollout) (api.Rollout, string) {
	s := map[string]steering{timeoutPause: sendPause, timeoutCancel: sendCancel}[m.OnTimeout.ValueString()]
	if s == justWait {
		return live, ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), controlWithin)
	defer cancel()
	verb := m.OnTimeout.ValueString()
	reason := *m
	reason.Reason = optionalString("the time that a Terraform apply waits was over (on_timeout = \"" + verb + "\")")
	after, err := r.send(ctx, s, *m, reason, live)
	if err != nil {
		return live, fmt.Sprintf("on_timeout = %q was not carried out: %s.", verb, render.Inert(err.Error()))
	}
	got, err := r.engine.client.Await(ctx, after.EndpointID, after.ID, r.engine.progressOf(ctx))
	if got.Rollout.State != "" {
		after = got.Rollout
	}
	if err != nil {
		return after, fmt.Sprintf("on_timeout = %q was accepted; its effect was not seen within %s.", verb, controlWithin)
	}
	return after, fmt.Sprintf("on_timeout = %q was carried out: it is %s with %d%% on the target.", verb, engineclient.Short(after.State), percentOf(after))
}

// addSteerRefusal reports a control that was not sent or not taken.
func addSteerRefusal(diags *diag.Diagnostics, s steering, id string, err error) {
	verb := planning.Control(s).String()
	var refused *api.Error
	if errors.As(err, &refused) || engineclient.IsUnreachable(err) || errors.Is(err, context.Canceled) {
		addRefusal(diags, verb+" rollout "+id, err)
		return
	}
	diags.AddError(fmt.Sprintf("Rollout %s is left as it is", id), fmt.Sprintf("The apply was to %s it, but %s. Nothing was sent.", verb, err))
}
