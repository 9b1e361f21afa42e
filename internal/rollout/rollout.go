package rollout

import (
	"fmt"
	"strings"
	"time"
)

// Phase is where inside a step a rollout is. The order is a promise: capacity
// leads traffic on the way up, traffic leads capacity on the way down, and the
// gate comes before the step is recorded.
type Phase string

// The phases of a step, in order.
const (
	PhaseChecking    Phase = "CHECKING"    // is there capacity, and do the bounds allow it
	PhaseScaling     Phase = "SCALING"     // the target's floor is raised; waiting until enough replicas answer
	PhaseShifting    Phase = "SHIFTING"    // the new split is on its way to the routers
	PhasePropagating Phase = "PROPAGATING" // served; routing caches converge
	PhaseDraining    Phase = "DRAINING"    // the source's floor is lowered; its replicas finish
	PhaseSoaking     Phase = "SOAKING"     // holding the split
	PhaseGating      Phase = "GATING"      // the window is judged
	PhaseConfirming  Phase = "CONFIRMING"  // a breach is looked at again
	PhaseReleasing   Phase = "RELEASING"   // the pair's split becomes standing weights
)

// Phases lists the phases in order.
func Phases() []Phase {
	return []Phase{PhaseChecking, PhaseScaling, PhaseShifting, PhasePropagating, PhaseDraining, PhaseSoaking, PhaseGating, PhaseConfirming, PhaseReleasing}
}

// settled reports whether the step's own split is served in this phase.
func (p Phase) settled() bool {
	switch p {
	case PhasePropagating, PhaseDraining, PhaseSoaking, PhaseGating, PhaseConfirming, PhaseReleasing:
		return true
	case PhaseChecking, PhaseScaling, PhaseShifting:
		return false
	}
	return false
}

// StepRecord is what became of one step.
type StepRecord struct {
	State         StepState `json:"state"`
	StartedAt     time.Time `json:"startedAt,omitzero"`
	CompletedAt   time.Time `json:"completedAt,omitzero"`
	FailureReason string    `json:"failureReason,omitempty"`
	Rows          []Row     `json:"rows,omitempty"`
	Health        *Health   `json:"health,omitempty"` // nil before the first shift, and after a person went on
}

// PauseInfo says since when and why a rollout is paused.
type PauseInfo struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
}

// Condition is why the engine parked a rollout, or what limits it.
type Condition struct {
	Type     string    `json:"type,omitempty"` // of one that only informs; empty for a park
	Category Category  `json:"category"`
	Message  string    `json:"message"`
	AtStep   int       `json:"atStep"`
	At       time.Time `json:"at"`
	Rows     []Row     `json:"rows,omitempty"`
}

// Peek is one look at the gate before it must decide.
type Peek struct {
	At       time.Time `json:"at"`
	Breached []int     `json:"breached,omitempty"` // rules
}

// Rollout is the whole record of one rollout: everything that Decide needs to go
// on after a crash.
type Rollout struct {
	ID         string  `json:"id"`
	ProjectID  string  `json:"projectId"`
	EndpointID string  `json:"endpointId"`
	Spec       Spec    `json:"spec"`
	Timings    Timings `json:"timings"`
	Journey    Journey `json:"journey"`
	State      State   `json:"state"`
	Version    int64   `json:"version"` // grows with every write; the etag

	Step    int          `json:"step"` // 0-based
	Phase   Phase        `json:"phase,omitempty"`
	Steps   []StepRecord `json:"steps"`
	Percent int          `json:"percent"` // applied: what the routers serve

	PhaseSince     time.Time `json:"phaseSince,omitzero"`
	SteadySince    time.Time `json:"steadySince,omitzero"`     // soak of this step began
	Generation     uint64    `json:"generation,omitempty"`     // route under which this step's split is served
	Lifted         bool      `json:"lifted,omitempty"`         // the target's ceiling was lifted
	Hold           *int      `json:"hold,omitempty"`           // split to hold while parked under-served
	Trip           *Trip     `json:"trip,omitempty"`           // the circuit breaker took the target's traffic away; until a person goes on
	Edit           *Edit     `json:"edit,omitempty"`           // a person broke the glass; until somebody goes on
	ArmedSince     time.Time `json:"armedSince,omitzero"`      // the breaker looks no further back: start, or last resume
	SourceReleased bool      `json:"sourceReleased,omitempty"` // the drain of a held source has begun
	Peeks          []Peek    `json:"peeks,omitempty"`
	Limit          *Limit    `json:"limit,omitempty"`    // why the current step stands at a part of its share
	Waits          string    `json:"waits,omitempty"`    // why the routers are behind, while the drain waits for them
	Attempts       int       `json:"attempts,omitempty"` // gates judged in this step, without the looks that confirm a breach

	Pause      *PauseInfo `json:"pause,omitempty"`
	Condition  *Condition `json:"condition,omitempty"`
	RetryAt    time.Time  `json:"retryAt,omitzero"`
	RetryUntil time.Time  `json:"retryUntil,omitzero"`
	Canceling  *PauseInfo `json:"canceling,omitempty"` // who canceled, when and why

	CreatedAt   time.Time `json:"createdAt"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	CompletedAt time.Time `json:"completedAt,omitzero"`
	UpdatedAt   time.Time `json:"updatedAt,omitzero"`
}

// New makes a rollout in PENDING from a valid spec, and the event that tells it.
func New(id, project, endpoint string, s Spec, j Journey, t Timings, now time.Time) (Rollout, []Event) {
	r := Rollout{
		ID: id, ProjectID: project, EndpointID: endpoint, Spec: s, Timings: t, Journey: j,
		State: Pending, Percent: j.Seed, CreatedAt: now, UpdatedAt: now,
		Steps: make([]StepRecord, len(j.Rungs)),
	}
	for i := range r.Steps {
		r.Steps[i].State = StepPending
	}
	name := strings.ToLower(strings.ReplaceAll(string(s.Strategy), "_", "-"))
	return r, []Event{r.event(now, EventCreated, "%s rollout created: %s → %s, %d step(s) to 100%%", name, s.Source, s.Target, len(j.Rungs))}
}

// Rung returns the current rung.
func (r Rollout) Rung() Rung { return r.Journey.Rungs[r.Step] }

// Last reports whether the current step is the last one.
func (r Rollout) Last() bool { return r.Step == len(r.Journey.Rungs)-1 }

// SoakEnds returns when the current soak ends; zero unless one has begun.
func (r Rollout) SoakEnds() time.Time {
	if r.SteadySince.IsZero() {
		return time.Time{}
	}
	return r.SteadySince.Add(r.Journey.Soak)
}

// clone copies the parts that Decide changes in place.
func (r Rollout) clone() Rollout {
	r.Steps = append([]StepRecord(nil), r.Steps...)
	r.Peeks = append([]Peek(nil), r.Peeks...)
	return r
}

// enter begins a phase. A step that is looked at anew is on its way nowhere, and one
// whose own share is served is limited no more.
func (r *Rollout) enter(p Phase, now time.Time) {
	r.Phase, r.PhaseSince, r.Waits = p, now, ""
	switch {
	case p == PhaseChecking || p == PhaseScaling:
		r.stop()
	case p.settled() && r.Limit != nil && !r.Limit.Moving:
		r.Limit = nil
	}
}

// happen moves the state by the table. A move that the table lacks is a bug of
// the engine; the rollout then parks, since nothing continues by default.
func (r *Rollout) happen(h Happening) {
	next, ok := Next(r.State, h)
	if !ok {
		r.Condition = &Condition{Category: Internal, Message: fmt.Sprintf("the state machine has no %q in %s; report this with the rollout's id", h, r.State), AtStep: r.Step, At: r.UpdatedAt}
		r.State = SystemPaused
		return
	}
	r.State = next
}
