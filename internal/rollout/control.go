package rollout

import (
	"strings"
	"time"
)

// The controls only set facts; Decide does the work. Each returns the rollout as
// accepted, or a *Refusal that says in which state it is and what can be done.

// Start begins a PENDING rollout.
func (r Rollout) Start(now time.Time) (Rollout, []Event, error) {
	r, err := r.accept(AskedStart, now)
	if err != nil {
		return r, nil, err
	}
	r.StartedAt, r.ArmedSince = now, now
	r.Step = 0
	r.beginStep(now)
	return r, []Event{r.event(now, EventStarted, "rollout started: step 1 of %d targets %d%% traffic", len(r.Steps), r.Rung().Percent)}, nil
}

// PauseBy holds the rollout exactly where it is. On a rollout that the engine
// parked it stops the retries and makes the park a person's.
func (r Rollout) PauseBy(actor, reason string, now time.Time) (Rollout, []Event, error) {
	was := r.State
	r, err := r.accept(AskedPause, now)
	if err != nil {
		return r, nil, err
	}
	r.Pause = &PauseInfo{At: now, Reason: reason, By: actor}
	r.RetryAt, r.RetryUntil = time.Time{}, time.Time{}
	e := r.event(now, EventPauseRequested, "pause requested%s", because(reason))
	if was == SystemPaused {
		e = r.event(now, EventPaused, "paused at step %d of %d: retries stopped%s", r.Step+1, len(r.Steps), because(reason))
	}
	e.Actor, e.Reason = actor, reason
	return r, []Event{e}, nil
}

// Resume goes on at the same step and split. A gate that tripped is evaluated
// again on fresh data; a step is never skipped.
func (r Rollout) Resume(actor string, now time.Time) (Rollout, []Event, error) {
	r, err := r.accept(AskedResume, now)
	if err != nil {
		return r, nil, err
	}
	r.RetryUntil, r.ArmedSince = time.Time{}, now
	r.Steps[r.Step].Health = nil // a person has looked: it is counted anew
	r.goOn(now)
	e := r.event(now, EventResumed, "resumed at step %d of %d", r.Step+1, len(r.Steps))
	e.Actor = actor
	return r, []Event{e}, nil
}

// Promote jumps to the last step and runs that one in full.
func (r Rollout) Promote(actor string, now time.Time) (Rollout, []Event, error) {
	was := r.State
	r, err := r.accept(AskedPromote, now)
	if err != nil {
		return r, nil, err
	}
	last := len(r.Steps) - 1
	from := r.Step
	for i := from; i < last; i++ {
		r.Steps[i].State, r.Steps[i].CompletedAt = StepSkipped, now
	}
	r.RetryUntil = time.Time{}
	if was.Parked() {
		r.ArmedSince = now
	}
	switch {
	case from < last:
		r.clearPark()
		r.Step, r.Attempts, r.Limit = last, 0, nil
		r.beginStep(now)
	case was.Parked():
		r.goOn(now)
	case r.Phase == PhaseSoaking:
		r.happen(SoakBegan) // the last step is under way: nothing to jump, nothing to repeat
	}
	r.Steps[last].Health = nil
	e := r.event(now, EventPromoted, "promoted: step %d of %d runs next, %d step(s) skipped", last+1, len(r.Steps), last-from)
	e.Actor = actor
	return r, []Event{e}, nil
}

// Cancel freezes the split that is being served, at once.
func (r Rollout) Cancel(actor, reason string, now time.Time) (Rollout, []Event, error) {
	r, err := r.accept(AskedCancel, now)
	if err != nil {
		return r, nil, err
	}
	r.Canceling = &PauseInfo{At: now, Reason: reason, By: actor}
	r.RetryAt, r.RetryUntil = time.Time{}, time.Time{}
	e := r.event(now, EventCanceled, "cancel requested; traffic will be frozen at the current split")
	e.Actor, e.Reason = actor, reason
	return r, []Event{e}, nil
}

// accept moves the state by the table, or refuses.
func (r Rollout) accept(h Happening, now time.Time) (Rollout, error) {
	next, ok := Next(r.State, h)
	if !ok {
		return r, &Refusal{RolloutID: r.ID, Control: h, State: r.State, Hint: hintFor(r.State)}
	}
	r = r.clone()
	r.State, r.UpdatedAt = next, now
	return r, nil
}

func hintFor(s State) string {
	switch s {
	case Pending:
		return "start it, or delete it: a rollout that never started has nothing to undo"
	case Canceled, Completed:
		return "it is over; a new rollout can go on or back from the split it left"
	case Cancelling:
		return "wait until it is CANCELED"
	case Running, Stabilizing, Pausing:
		return "it is already under way"
	case Paused, SystemPaused:
		return "resume, promote or cancel it"
	}
	return ""
}

// goOn puts a parked rollout back to work at its step. What was served while it
// was parked counts: a soak or a window goes on, it does not start again. A step
// whose split or capacity was not what it should be is done again from its first
// check, so that its gate judges a steady state. A split that is to be held lower may be
// on its way to the routers: it is the engine's own, and nobody's edit.
func (r *Rollout) goOn(now time.Time) {
	disturbed := r.Percent != r.Goal().Percent || r.Hold != nil || r.Trip != nil || r.Edit != nil || r.Condition != nil && r.Condition.Category.disturbs()
	r.clearPark()
	if disturbed {
		r.beginStep(now)
		return
	}
	if r.Phase == PhaseReleasing {
		return
	}
	r.Steps[r.Step].State = StepRunning
	switch r.Phase {
	case PhaseGating, PhaseConfirming:
		r.enter(PhaseGating, now)
	case PhaseSoaking:
		r.UpdatedAt = now
		r.happen(SoakBegan)
	case PhasePropagating, PhaseDraining:
		r.PhaseSince = now // deadlines count from here, not from before the pause
	case PhaseChecking, PhaseScaling, PhaseShifting, PhaseReleasing:
		r.enter(PhaseChecking, now)
	}
}

func (r *Rollout) clearPark() {
	r.Pause, r.Condition, r.Hold, r.RetryAt = nil, nil, nil, time.Time{}
	r.Peeks, r.Waits, r.Trip, r.Edit = nil, "", nil, nil
}

// beginStep starts the current step from its first phase.
func (r *Rollout) beginStep(now time.Time) {
	st := &r.Steps[r.Step]
	st.State = StepRunning
	if st.StartedAt.IsZero() {
		st.StartedAt = now
	}
	st.CompletedAt = time.Time{}
	r.SteadySince, r.Peeks = time.Time{}, nil
	r.enter(PhaseChecking, now)
}

func because(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return ""
	}
	return ": " + reason
}
