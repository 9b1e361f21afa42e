package rollout

import "fmt"

// State is where a rollout is. There is no failed state: a rollout ends COMPLETED
// or CANCELED.
type State string

// The states of a rollout.
const (
	Pending      State = "PENDING"       // created, nothing touched, holds the endpoint's slot
	Running      State = "RUNNING"       // working a step
	Stabilizing  State = "STABILIZING"   // soaking at a step's split
	Pausing      State = "PAUSING"       // a person's pause is accepted
	Paused       State = "PAUSED"        // a person's pause holds; never resumed by the engine
	SystemPaused State = "SYSTEM_PAUSED" // parked by the engine with a category
	Cancelling   State = "CANCELLING"    // cancel accepted, the split still serves
	Canceled     State = "CANCELED"      // split frozen into standing weights
	Completed    State = "COMPLETED"     // all of the pair's traffic on the target
)

// States lists all states in the order of a rollout's life.
func States() []State {
	return []State{Pending, Running, Stabilizing, Pausing, Paused, SystemPaused, Cancelling, Canceled, Completed}
}

// Terminal reports whether a rollout in this state is over.
func (s State) Terminal() bool { return s == Canceled || s == Completed }

// Parked reports whether a rollout in this state waits for a person.
func (s State) Parked() bool { return s == Paused || s == SystemPaused }

// Active reports whether the engine works at a rollout in this state.
func (s State) Active() bool {
	return s == Running || s == Stabilizing || s == Pausing || s == Cancelling
}

// Happening is what moves a rollout from one state to another.
type Happening string

// Everything that can happen to a rollout's state.
const (
	AskedStart   Happening = "start"
	AskedPause   Happening = "pause"
	AskedResume  Happening = "resume"
	AskedPromote Happening = "promote"
	AskedCancel  Happening = "cancel"
	SoakBegan    Happening = "soak began"
	StepBegan    Happening = "next step began"
	Halted       Happening = "executor halted"
	Tripped      Happening = "condition found"
	RetryCame    Happening = "retry due"
	SplitFrozen  Happening = "split frozen"
	LastPassed   Happening = "last step passed"
	DrainBegan   Happening = "last drain began"
	GlassBroken  Happening = "glass broken"
)

// transitions is the whole state machine. A pair that is not here is refused for a
// control and a bug for the engine itself.
var transitions = map[State]map[Happening]State{
	Pending: {AskedStart: Running, GlassBroken: Pending},
	Running: {
		AskedPause: Pausing, AskedPromote: Running, AskedCancel: Cancelling,
		SoakBegan: Stabilizing, StepBegan: Running, Tripped: SystemPaused, LastPassed: Completed,
		DrainBegan: Running, GlassBroken: SystemPaused,
	},
	Stabilizing: {
		AskedPause: Pausing, AskedPromote: Running, AskedCancel: Cancelling,
		StepBegan: Running, Tripped: SystemPaused, LastPassed: Completed,
		DrainBegan: Running, GlassBroken: SystemPaused,
	},
	Pausing:      {Halted: Paused, AskedResume: Running, AskedCancel: Cancelling, GlassBroken: SystemPaused},
	Paused:       {AskedResume: Running, AskedPromote: Running, AskedCancel: Cancelling, GlassBroken: Paused},
	SystemPaused: {AskedResume: Running, AskedPromote: Running, AskedCancel: Cancelling, AskedPause: Paused, RetryCame: Running, GlassBroken: SystemPaused},
	Cancelling:   {SplitFrozen: Canceled},
	Canceled:     {},
	Completed:    {},
}

// Next returns the state after a happening, and whether the table has it.
func Next(s State, h Happening) (State, bool) {
	n, ok := transitions[s][h]
	return n, ok
}

// StepState is where one step is.
type StepState string

// The states of a step.
const (
	StepPending  StepState = "PENDING"
	StepRunning  StepState = "RUNNING"
	StepPassed   StepState = "PASSED"
	StepFailed   StepState = "FAILED"
	StepPaused   StepState = "PAUSED"
	StepCanceled StepState = "CANCELED"
	StepSkipped  StepState = "SKIPPED"
)

// Category is why the engine parked a rollout.
type Category string

// The categories of a park.
const (
	MetricRegression   Category = "METRIC_REGRESSION"
	MetricsUnavailable Category = "METRICS_UNAVAILABLE"
	TargetNotReady     Category = "TARGET_NOT_READY"
	SourceNotDrained   Category = "SOURCE_NOT_DRAINED"
	HealthRegression   Category = "HEALTH_REGRESSION"
	CapacityExhausted  Category = "CAPACITY_EXHAUSTED"
	RoutingError       Category = "ROUTING_ERROR"
	DependencyOutage   Category = "DEPENDENCY_OUTAGE"
	AbortedByOperator  Category = "ABORTED_BY_OPERATOR"
	Internal           Category = "INTERNAL"
	PolicyInfeasible   Category = "POLICY_INFEASIBLE"
	UnderServed        Category = "UNDER_SERVED"
	EntitlementLapsed  Category = "ENTITLEMENT_LAPSED"
)

// Recoverable reports whether the engine may retry a park of this category by
// itself. A confirmed regression always waits for a person.
func (c Category) Recoverable() bool {
	switch c {
	case MetricsUnavailable, TargetNotReady, CapacityExhausted, RoutingError, DependencyOutage, UnderServed, EntitlementLapsed:
		return true
	case MetricRegression, SourceNotDrained, HealthRegression, AbortedByOperator, Internal, PolicyInfeasible:
		return false
	}
	return false
}

// disturbs reports whether a park of this category means that the step's capacity
// or split was not what it should be, so that its soak has to be done again.
func (c Category) disturbs() bool {
	return c == UnderServed || c == HealthRegression || c == PolicyInfeasible || c == AbortedByOperator
}

// Refusal is a control that the state does not allow.
type Refusal struct {
	RolloutID string
	Control   Happening
	State     State
	Hint      string
}

func (r *Refusal) Error() string {
	msg := fmt.Sprintf("cannot %s rollout %s: it is %s", r.Control, r.RolloutID, r.State)
	if r.Control == GlassBroken { // which is no control of the rollout itself
		msg = fmt.Sprintf("cannot break the glass over rollout %s: it is %s", r.RolloutID, r.State)
	}
	if r.Hint != "" {
		msg += "; " + r.Hint
	}
	return msg
}
