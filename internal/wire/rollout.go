package wire

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// RolloutToAPI tells a rollout. currentStep is unset while PENDING and an explicit
// 0 at the first step; pauseInfo is there only while paused, completedAt only at
// the end; step index and percent are always sent.
func RolloutToAPI(r rollout.Rollout) api.Rollout {
	out := api.Rollout{
		ID:                    r.ID,
		ProjectID:             r.ProjectID,
		EndpointID:            r.EndpointID,
		SourceDeploymentID:    r.Spec.Source,
		TargetDeploymentID:    r.Spec.Target,
		Strategy:              api.PrefixStrategy + string(r.Spec.Strategy),
		State:                 api.PrefixRolloutState + string(r.State),
		CurrentTrafficPercent: ptr(standing(r)),
		ETag:                  rollout.ETag(r.Version),
		CreatedAt:             api.At(r.CreatedAt),
		StartedAt:             api.AtOrNil(r.StartedAt),
		Status:                statusToAPI(r),
		Sluice:                extraToAPI(r),
	}
	if r.State != rollout.Pending {
		out.CurrentStep = ptr(r.Step)
	}
	if r.State.Terminal() {
		out.CompletedAt = api.AtOrNil(r.CompletedAt)
	}
	if r.State.Parked() && r.Pause != nil {
		out.PauseInfo = &api.PauseInfo{PausedAt: api.At(r.Pause.At), Reason: r.Pause.Reason}
	}
	return out
}

// standing is the percent on the target. The rollout's own record follows a person's
// edit one decision later, and who reads in between must not be told the old split.
func standing(r rollout.Rollout) int {
	if r.Edit != nil && !r.State.Terminal() {
		return r.Edit.To
	}
	return r.Percent
}

func statusToAPI(r rollout.Rollout) api.RolloutStatus {
	out := api.RolloutStatus{Steps: make([]api.RolloutStep, 0, len(r.Steps)), TotalSteps: len(r.Steps), UpdatedAt: api.AtOrNil(r.UpdatedAt)}
	for i, st := range r.Steps {
		out.Steps = append(out.Steps, api.RolloutStep{
			StepIndex:            i,
			TargetTrafficPercent: r.Journey.Rungs[i].Percent,
			State:                api.PrefixStepState + string(st.State),
			StartedAt:            api.AtOrNil(st.StartedAt),
			CompletedAt:          api.AtOrNil(st.CompletedAt),
			FailureReason:        st.FailureReason,
			Metrics:              rowsToAPI(st.Rows),
		})
	}
	if r.Condition != nil {
		out.Condition = ptr(conditionToAPI(*r.Condition))
	}
	for _, c := range r.Conditions() {
		out.Conditions = append(out.Conditions, conditionToAPI(c))
	}
	return out
}

func conditionToAPI(c rollout.Condition) api.Condition {
	return api.Condition{
		Type:       c.Type,
		Category:   api.PrefixCategory + string(c.Category),
		Message:    c.Message,
		AtStep:     c.AtStep,
		ObservedAt: api.At(c.At),
		Metrics:    rowsToAPI(c.Rows),
	}
}

func rowsToAPI(rows []rollout.Row) []api.MetricRow {
	var out []api.MetricRow
	for _, row := range rows {
		out = append(out, RowToAPI(row))
	}
	return out
}

// RowToAPI tells one rule with what was measured. A row without a decision has no
// verdict; failureReason is there only on a breach, and why a reading was
// unavailable stands in the note.
func RowToAPI(row rollout.Row) api.MetricRow {
	stat := row.Rule.Stat
	if stat == "" {
		stat = rollout.StatAvg
	}
	out := api.MetricRow{
		Name:        string(row.Rule.Metric),
		Stat:        api.PrefixStat + string(stat),
		SourceValue: row.SourceValue,
		TargetValue: row.TargetValue,
		Sluice: &api.RowExtra{
			SourceSamples:     row.SourceSamples,
			TargetSamples:     row.TargetSamples,
			SamplesNeeded:     row.Needed,
			RegressionPercent: row.Regression,
			Note:              row.Note,
		},
	}
	if row.Rule.Percentile != 0 {
		out.Percentile = ptr(row.Rule.Percentile)
	}
	if c := row.Rule.Regression; c != nil {
		out.Check = api.PrefixCheck + "REGRESSION"
		out.Direction = api.PrefixDirection + string(c.Direction)
		out.MaxRegressionPercent = ptr(c.MaxPercent)
	}
	if c := row.Rule.Threshold; c != nil {
		out.Check = api.PrefixCheck + "THRESHOLD"
		out.Operator = api.PrefixOperator + string(c.Operator)
		out.Threshold = ptr(c.Value)
	}
	if row.Verdict != rollout.VerdictNone {
		out.Verdict = api.PrefixVerdict + string(row.Verdict)
	}
	switch row.Verdict {
	case rollout.VerdictBreached:
		out.FailureReason = row.Reason
	case rollout.VerdictUnavailable:
		out.Sluice.Note = row.Reason
	case rollout.VerdictPass, rollout.VerdictNone:
	}
	return out
}

func extraToAPI(r rollout.Rollout) *api.RolloutExtra {
	spec := SpecToAPI(r.Spec)
	out := &api.RolloutExtra{
		Spec:        &spec,
		Digest:      r.Spec.Digest,
		Origin:      r.Spec.Origin,
		Soak:        ptr(api.Duration(r.Journey.Soak)),
		Ladder:      LadderToAPI(r.Journey),
		SeedPercent: r.Journey.Seed,
		FinalSource: r.Journey.FinalSource,
		FinalTarget: r.Journey.FinalTarget,
		Attempts:    r.Attempts,
		Failures:    failuresOf(r),
		RetryAt:     api.AtOrNil(r.RetryAt),
		RetryUntil:  api.AtOrNil(r.RetryUntil),
		HeldSource:  r.Spec.HoldsSource() && !r.SourceReleased && !r.State.Terminal(),
		Trip:        tripToAPI(r),
		Drift:       driftToAPI(r),
	}
	if !r.State.Terminal() {
		out.Phase, out.PhaseSince = string(r.Phase), api.AtOrNil(r.PhaseSince)
		var at time.Time
		at, out.NextEvent = Next(r)
		out.NextAt = api.AtOrNil(at)
	}
	return out
}

// failuresOf counts the occasions on which the target failed in the current step.
func failuresOf(r rollout.Rollout) int {
	if h := r.Steps[r.Step].Health; h != nil && !r.State.Terminal() {
		return h.Occasions
	}
	return 0
}

// LadderToAPI tells the rungs with their replica counts.
func LadderToAPI(j rollout.Journey) []api.LadderRung {
	out := make([]api.LadderRung, 0, len(j.Rungs))
	for _, rung := range j.Rungs {
		out = append(out, api.LadderRung{TrafficPercent: rung.Percent, TargetReplicas: rung.Target, SourceReplicas: rung.Source})
	}
	return out
}

// Next says what comes next for a rollout and when: the zero instant means that it
// waits for something other than the clock.
func Next(r rollout.Rollout) (at time.Time, what string) {
	switch r.State {
	case rollout.Pending:
		return time.Time{}, "it is started by hand or by the door that made it"
	case rollout.Pausing:
		return time.Time{}, "it pauses"
	case rollout.Paused:
		return time.Time{}, "a person resumes, promotes or cancels"
	case rollout.SystemPaused:
		if !r.RetryAt.IsZero() {
			return r.RetryAt, fmt.Sprintf("the engine retries step %d", r.Step+1)
		}
		return time.Time{}, "a person resumes, promotes or cancels"
	case rollout.Cancelling:
		return time.Time{}, fmt.Sprintf("the split freezes at %d%%/%d%% (source/target)", 100-r.Percent, r.Percent)
	case rollout.Running, rollout.Stabilizing:
		return nextInStep(r)
	case rollout.Completed, rollout.Canceled:
	}
	return time.Time{}, ""
}

func nextInStep(r rollout.Rollout) (time.Time, string) {
	rung := r.Goal()
	if r.Waits != "" {
		return time.Time{}, "the routers take the latest route, then the source drains (" + r.Waits + ")"
	}
	if rung != r.Rung() && r.Phase == rollout.PhaseDraining {
		return time.Time{}, fmt.Sprintf("the source is down to %d replica(s), then the rest of the target is placed", rung.Source)
	}
	switch r.Phase {
	case rollout.PhaseChecking:
		return time.Time{}, "capacity and limits are checked"
	case rollout.PhaseScaling:
		return time.Time{}, fmt.Sprintf("%d target replica(s) answer, then traffic shifts to %d%%", rung.Need, rung.Percent)
	case rollout.PhaseShifting:
		return time.Time{}, fmt.Sprintf("the routers serve %d%%", rung.Percent)
	case rollout.PhasePropagating:
		return r.PhaseSince.Add(r.Timings.Propagation), afterPropagation(r)
	case rollout.PhaseDraining:
		if r.Judged() {
			return time.Time{}, fmt.Sprintf("the source is down to %d replica(s), then the last step passes", rung.Source)
		}
		return time.Time{}, fmt.Sprintf("the source is down to %d replica(s), then the soak of %s begins", rung.Source, r.Journey.Soak)
	case rollout.PhaseSoaking:
		if len(r.Spec.Rules) > 0 {
			return r.SoakEnds(), "the gate is judged"
		}
		return r.SoakEnds(), afterPass(r)
	case rollout.PhaseGating:
		if len(r.Spec.Rules) == 0 {
			return time.Time{}, afterPass(r)
		}
		return r.PhaseSince.Add(r.Timings.GateSettle), "the gate's verdict"
	case rollout.PhaseConfirming:
		return r.PhaseSince.Add(r.Timings.Confirmation), "the breach is confirmed or dismissed"
	case rollout.PhaseReleasing:
		return time.Time{}, "the split becomes standing weights and the rollout completes"
	}
	return time.Time{}, ""
}

func afterPropagation(r rollout.Rollout) string {
	if r.HoldsSource() {
		return fmt.Sprintf("the soak of %s begins; the source stays at its %d replica(s)", r.Journey.Soak, r.Journey.Source)
	}
	return fmt.Sprintf("the source drains to %d replica(s)", r.Rung().Source)
}

func afterPass(r rollout.Rollout) string {
	if r.Last() && r.HoldsSource() {
		return "the source drains, then the last step passes"
	}
	if r.Last() {
		return "the last step passes and the rollout completes"
	}
	return fmt.Sprintf("step %d passes and step %d to %d%% begins", r.Step+1, r.Step+2, r.Journey.Rungs[r.Step+1].Percent)
}
