package planning

import (
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Values of desired_state.
const (
	WantCompleted = "completed"
	WantPaused    = "paused"
	WantPromoted  = "promoted"
	WantCanceled  = "canceled"
)

// Control is what a door sends to a rollout beside waiting for it.
type Control int

// The controls. JustWait sends nothing and waits on; Nothing means that what is wanted is
// there, so that not even a wait is due.
const (
	JustWait Control = iota
	Nothing
	SendPause
	SendResume
	SendPromote
	SendCancel
)

// String is the verb; empty where nothing is sent.
func (c Control) String() string {
	return map[Control]string{SendPause: "pause", SendResume: "resume", SendPromote: "promote", SendCancel: "cancel"}[c]
}

// Wish is what is asked of a rollout that exists, beside what was asked before.
type Wish struct {
	ID       string
	State    rollout.State
	Before   string // desired_state that was applied last
	Want     string // desired_state now
	NewToken bool   // resume_token is given and another one than was applied last
	Again    string // how this door starts the same spec again on purpose, a clause
}

// ControlFor decides from the state and what is asked now. Resume and promote follow from a
// change of the configuration and not from what it says: an apply that runs again, as a
// pipeline does, never lifts a park that came after the decision. refused says why what
// is asked cannot be.
func ControlFor(w Wish) (c Control, refused string) {
	changed := w.Before != w.Want
	resume := w.NewToken || changed && w.Before == WantPaused && w.Want == WantCompleted
	over := fmt.Sprintf("Rollout %s is %s, which is final. To go on, or back, change the spec: that is a new rollout.", w.ID, w.State)
	switch {
	case w.State == rollout.Pending && w.Want != WantCompleted:
		return JustWait, "The rollout has not started. Let an apply start it, or destroy it: there is nothing to undo."
	case w.Want == WantPaused:
		return steerToPause(w.State, changed, resume, over)
	case w.Want == WantCanceled:
		return steerToCancel(w.State, changed, over)
	case w.Want == WantPromoted && changed:
		return steerToPromote(w.State, over)
	case w.State == rollout.Canceled:
		if changed || resume {
			return Nothing, over + " Somebody decided against this spec, so it is not started again by itself; on purpose: " + w.Again + "."
		}
		return Nothing, ""
	case w.State.Terminal():
		return Nothing, ""
	case resume && (w.State.Parked() || w.State == rollout.Pausing):
		return SendResume, ""
	}
	return JustWait, ""
}

func steerToPause(state rollout.State, changed, resume bool, over string) (Control, string) {
	switch {
	case resume:
		return Nothing, "desired_state = \"paused\" and a new resume_token contradict each other. Leave one of them as it was."
	case state.Terminal() && changed:
		return Nothing, over
	case state == rollout.Cancelling && changed:
		return JustWait, "The rollout is being canceled; it cannot be paused any more."
	case state.Terminal(), state == rollout.Paused:
		return Nothing, ""
	case state == rollout.Pausing, state == rollout.Cancelling:
		return JustWait, ""
	}
	return SendPause, "" // also in SYSTEM_PAUSED: it ends the engine's own retries
}

func steerToCancel(state rollout.State, changed bool, over string) (Control, string) {
	switch {
	case state == rollout.Completed && changed:
		return Nothing, over
	case state.Terminal():
		return Nothing, ""
	case state == rollout.Cancelling:
		return JustWait, ""
	}
	return SendCancel, ""
}

func steerToPromote(state rollout.State, over string) (Control, string) {
	if state == rollout.Completed {
		return Nothing, ""
	}
	if state.Terminal() {
		return Nothing, over
	}
	if state == rollout.Pausing || state == rollout.Cancelling {
		return JustWait, fmt.Sprintf("The rollout is %s now, in which it cannot be promoted. Plan again in a moment.", state)
	}
	return SendPromote, ""
}

// IsThere reports whether a control would change nothing: its effect was reached, by an
// earlier try whose answer was lost or by somebody else. last says whether the rollout is
// at its last step.
func (c Control) IsThere(state rollout.State, last bool) bool {
	switch c {
	case SendPause:
		return state == rollout.Paused || state == rollout.Pausing
	case SendResume:
		return state == rollout.Running || state == rollout.Stabilizing || state == rollout.Completed
	case SendPromote:
		return state == rollout.Completed || last && (state == rollout.Running || state == rollout.Stabilizing)
	case SendCancel:
		return state == rollout.Cancelling || state == rollout.Canceled
	case JustWait, Nothing:
	}
	return true
}
