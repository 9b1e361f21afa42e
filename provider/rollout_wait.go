package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// progress tells each change of a rollout in Terraform's log.
type progress struct {
	info, warn func(line string, fields map[string]any)
}

func logged(ctx context.Context) progress {
	return progress{
		info: func(line string, fields map[string]any) { tflog.Info(ctx, line, fields) },
		warn: func(line string, fields map[string]any) { tflog.Warn(ctx, line, fields) },
	}
}

// Changed logs what a poll found new.
func (p progress) Changed(c engineclient.Change) {
	r := c.After
	fields := map[string]any{"rollout_id": r.ID, "state": engineclient.Short(r.State), "elapsed": c.Elapsed.Round(time.Second).String()}
	if r.CurrentStep != nil {
		fields["step"] = *r.CurrentStep + 1
	}
	p.info(sentenceOf(c), fields)
}

// sentenceOf tells a change in one line.
func sentenceOf(c engineclient.Change) string {
	r := c.After
	line := fmt.Sprintf("rollout %s: %s, %d%% on the target", r.ID, engineclient.Short(r.State), percentOf(r))
	if r.CurrentStep != nil {
		line = fmt.Sprintf("rollout %s: step %d of %d, %d%% on the target, %s", r.ID, *r.CurrentStep+1, r.Status.TotalSteps, percentOf(r), engineclient.Short(r.State))
	}
	if x := r.Sluice; x != nil && x.Phase != "" {
		line += " (" + x.Phase + ")"
		if x.NextEvent != "" {
			line += "; next: " + render.Inert(x.NextEvent)
		}
	}
	return line
}

// Lost logs that polls fail and the wait goes on.
func (p progress) Lost(err error, elapsed time.Duration) {
	p.warn(fmt.Sprintf("the engine does not answer; waiting on: %v", err), map[string]any{"elapsed": elapsed.Round(time.Second).String()})
}

func percentOf(r api.Rollout) int {
	if r.CurrentTrafficPercent == nil {
		return 0
	}
	return *r.CurrentTrafficPercent
}

// await waits and takes over how it ended. Whatever that was, the model is fully
// known afterwards and the diagnostics hold warnings only.
func (r *rolloutResource) await(ctx context.Context, m *rolloutModel, live api.Rollout, within time.Duration, diags *diag.Diagnostics) {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if r.engine.progress != nil {
		defer r.engine.progress.warn(diags)
	}
	got, err := r.engine.client.Await(waiting, live.EndpointID, live.ID, r.engine.progressOf(ctx))
	if got.Rollout.State != "" {
		live = got.Rollout
	}
	m.apply(live)
	if err != nil {
		note := ""
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			live, note = r.timedOut(ctx, m, live)
			m.apply(live)
		}
		waitEnded(ctx, diags, live, within, err, note)
		return
	}
	want := m.DesiredState.ValueString()
	switch got.Outcome {
	case engineclient.Completed:
	case engineclient.Canceled:
		if want == wantCanceled {
			return
		}
		diags.AddWarning(fmt.Sprintf("Rollout %s was canceled while it was waited for", live.ID),
			fmt.Sprintf("The split is frozen at %d/%d (source/target), what serves keeps serving. This spec is not started again by itself; change it to go another way.", 100-percentOf(live), percentOf(live)))
	case engineclient.WasParked:
		if want != wantPaused || live.State != engineclient.StatePaused {
			parked(m, diags, live)
		}
	}
}

// parked tells a park as what it is: a decision that waits for a person.
func parked(m *rolloutModel, diags *diag.Diagnostics, live api.Rollout) {
	if m.OnParked.ValueString() == parkedSilent {
		return
	}
	park := render.ParkOf(live, render.Options{})
	step := ""
	if live.CurrentStep != nil {
		step = fmt.Sprintf(" at step %d of %d", *live.CurrentStep+1, live.Status.TotalSteps)
	}
	diags.AddWarning(fmt.Sprintf("Rollout %s is parked: %s%s with %d%% on the target", live.ID, park.Category, step, percentOf(live)),
		park.Text()+"\n\nThe resource is saved and not tainted; a later apply waits on and lifts nothing; one with a new resume_token resumes. A red pipeline: data source sluice_rollout_gate.")
}

// waitEnded tells why a wait is over while the rollout is not; note says what was done
// about that.
func waitEnded(ctx context.Context, diags *diag.Diagnostics, live api.Rollout, within time.Duration, err error, note string) {
	where := fmt.Sprintf("It is %s with %d%% on the target, goes on at the engine, and is saved here untainted. The next apply waits for it again.", engineclient.Short(live.State), percentOf(live))
	var unexpected *engineclient.UnexpectedState
	switch {
	case ctx.Err() != nil:
		diags.AddWarning(fmt.Sprintf("Interrupted: rollout %s goes on", live.ID), where)
	case note != "":
		diags.AddWarning(fmt.Sprintf("Rollout %s was not over after %s", live.ID, planning.Span(within)), note+" It is saved here untainted. An apply that ends like this exits 0; the data source sluice_rollout_gate makes a pipeline red.")
	case errors.Is(err, context.DeadlineExceeded):
		diags.AddWarning(fmt.Sprintf("Rollout %s is not over after %s", live.ID, planning.Span(within)), where+" An apply that ends like this exits 0; the data source sluice_rollout_gate makes a pipeline red.")
	case errors.As(err, &unexpected):
		diags.AddWarning(fmt.Sprintf("Rollout %s is in a state that this version does not know", live.ID), sentence(unexpected.Error()))
	default:
		diags.AddWarning(fmt.Sprintf("Rollout %s is not watched any longer", live.ID), fmt.Sprintf("%s (%v)", where, err))
	}
}
