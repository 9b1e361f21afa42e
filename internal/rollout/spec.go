package rollout

import "time"

// Strategy is how traffic moves from the source to the target.
type Strategy string

// The three strategies; all run through the same step engine.
const (
	Canary    Strategy = "CANARY"     // staged percents with a soak and gates between them
	BlueGreen Strategy = "BLUE_GREEN" // one step from 0 to 100
	Rolling   Strategy = "ROLLING"    // replica by replica, one up then one down
)

// Spec is what a caller asks for. It is never changed after creation; what is in
// effect stands in the Journey.
type Spec struct {
	Source       string        `json:"source"` // deployment id
	Target       string        `json:"target"` // deployment id
	Strategy     Strategy      `json:"strategy"`
	Steps        []StepSpec    `json:"steps,omitempty"`        // canary; empty for the default ladder
	StepInterval time.Duration `json:"stepInterval,omitempty"` // canary; 0 for the default
	Rules        []Rule        `json:"rules,omitempty"`        // canary
	FinalSource  int           `json:"finalSource,omitempty"`  // replicas left on the source, ≥ 0
	FinalTarget  *int          `json:"finalTarget,omitempty"`  // replicas of the target at the end, ≥ 1; nil for the default
	HoldSource   bool          `json:"holdSource,omitempty"`   // keep the source whole until the last gate has passed
	Breaker      *Breaker      `json:"breaker,omitempty"`      // an automatic way back; implies HoldSource
	Digest       string        `json:"digest,omitempty"`       // of the spec a door planned
	Origin       string        `json:"origin,omitempty"`       // who asked, for people
}

// StepSpec is one rung as asked.
type StepSpec struct {
	Percent  int  `json:"percent"`            // of the pair's traffic on the target, 1 to 100
	Replicas *int `json:"replicas,omitempty"` // target count of this step instead of the computed one
}

// Direction says which way is worse.
type Direction string

// The two directions of a regression check.
const (
	HigherIsWorse Direction = "HIGHER_IS_WORSE"
	LowerIsWorse  Direction = "LOWER_IS_WORSE"
)

// Operator is the condition that the target must satisfy in a threshold check.
type Operator string

// The four operators.
const (
	GT  Operator = "GT"
	GTE Operator = "GTE"
	LT  Operator = "LT"
	LTE Operator = "LTE"
)

// Rule is one metric gate: exactly one of Regression and Threshold is set.
type Rule struct {
	Metric     Metric        `json:"metric"`
	Stat       Stat          `json:"stat,omitempty"` // empty for the metric's default, the average
	Percentile int           `json:"percentile,omitempty"`
	Window     time.Duration `json:"window,omitempty"` // 0 for the engine's default
	Regression *Regression   `json:"regression,omitempty"`
	Threshold  *Threshold    `json:"threshold,omitempty"`
}

// Regression allows the target to be at most MaxPercent worse than the source.
type Regression struct {
	Direction  Direction `json:"direction"`
	MaxPercent float64   `json:"maxPercent"` // ≥ 0; 0 fails on any regression
}

// Threshold is an absolute condition on the target alone.
type Threshold struct {
	Operator Operator `json:"operator"`
	Value    float64  `json:"value"` // in the metric's unit
}

// LongestWindow is the longest window that a metric rule may have: the meter has to
// remember all of it, with the ingestion lag and the confirmation.
const LongestWindow = 30 * time.Minute

// Timings are the waits an engine runs by. They are configuration of the engine;
// a rollout keeps those it was created under.
type Timings struct {
	Propagation     time.Duration `json:"propagation"`     // between the shift and the drain, for routing to converge
	IngestionLag    time.Duration `json:"ingestionLag"`    // from a request to its readable data point
	DefaultWindow   time.Duration `json:"defaultWindow"`   // of a rule that names none
	MinimumWindow   time.Duration `json:"minimumWindow"`   // shortest window a rule may ask for
	DefaultInterval time.Duration `json:"defaultInterval"` // wait of a canary step that asks for none
	Stabilization   time.Duration `json:"stabilization"`   // wait of a blue-green or rolling step, which has no gate
	Confirmation    time.Duration `json:"confirmation"`    // how long a breach is looked at before it parks
	PeekEvery       time.Duration `json:"peekEvery"`       // between two looks during the confirmation
	GateSettle      time.Duration `json:"gateSettle"`      // after the soak, until the window's last slot is closed and merged
	RetryInterval   time.Duration `json:"retryInterval"`   // between two retries of a recoverable park
	RetryFor        time.Duration `json:"retryFor"`        // after which a park is left to a person
	ReadyDeadline   time.Duration `json:"readyDeadline"`   // for a target to become ready, beyond its cold-start budget
	DrainDeadline   time.Duration `json:"drainDeadline"`   // for source replicas to be gone
}

// DefaultTimings are the published numbers of the platform; the deadlines, the
// spacing of the looks and the stabilization wait are ours.
func DefaultTimings() Timings {
	return Timings{
		Propagation:     30 * time.Second,
		IngestionLag:    90 * time.Second,
		DefaultWindow:   300 * time.Second,
		MinimumWindow:   60 * time.Second,
		DefaultInterval: 180 * time.Second,
		Stabilization:   30 * time.Second,
		Confirmation:    90 * time.Second,
		PeekEvery:       15 * time.Second,
		GateSettle:      3 * time.Second,
		RetryInterval:   15 * time.Minute,
		RetryFor:        3 * time.Hour,
		ReadyDeadline:   5 * time.Minute,
		DrainDeadline:   15 * time.Minute,
	}
}

// DefaultLadder is the canary ladder of a spec that names none.
func DefaultLadder() []int { return []int{5, 25, 50, 100} }

// WindowOf returns the window in effect for a rule.
func (t Timings) WindowOf(r Rule) time.Duration {
	if r.Window > 0 {
		return r.Window
	}
	return t.DefaultWindow
}

// Soak returns the wait of each step as asked and as in effect. A canary's wait is
// grown to the longest window plus the ingestion lag, so that a gate's whole
// lookback lies inside the step that it judges; and any strategy's to what its circuit
// breaker needs to see a step, since the source is given up after the last.
func (t Timings) Soak(s Spec) (asked, inEffect time.Duration) {
	asked = t.Stabilization
	if s.Strategy == Canary {
		asked = s.StepInterval
		if asked <= 0 {
			asked = t.DefaultInterval
		}
	}
	inEffect = max(asked, t.breakerSees(s.Breaker))
	if s.Strategy == Canary {
		for _, r := range s.Rules {
			inEffect = max(inEffect, t.WindowOf(r)+t.IngestionLag)
		}
	}
	return asked, inEffect
}
