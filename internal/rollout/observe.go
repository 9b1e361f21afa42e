package rollout

import "time"

// Observed is the world as one look found it. It is a level, not a history.
type Observed struct {
	Source   Side
	Target   Side
	Split    Split
	Capacity Capacity
	Readings []Reading // in the order of Wants, at the same instant
	Breaker  []Reading // in the order of WantsBreaker, at the same instant
	Lapsed   string    // why the billing allows no scale-up; empty when it does, or WantsEntitlement asks for none
	Since    time.Time // when this engine began to watch; zero for always
}

// Side is one deployment of the pair.
type Side struct {
	Bounds      Bounds
	Desired     int    // what the autoscaler wants
	Scheduled   int    // placed: starting, ready or draining
	Ready       int    // answering
	Draining    int    // finishing what they hold
	Unplaced    int    // wanted without capacity
	Failures    int    // of replicas that were ready, as long as this fleet counts; never falls while it does
	LastFailure string // why the last of them failed
	Message     string
	ColdStart   time.Duration // budget of one replica from start to ready
	Returning   bool          // the engine began not long ago, and has not yet seen the replicas that served before
}

// serving counts the replicas that answer and are meant to stay: an operator's
// lower maximum takes the others away.
func (s Side) serving() int { return min(s.Ready, s.Bounds.Max) }

// Split is what the routers serve.
type Split struct {
	Held        bool   // the pair's share is held by a rollout; false once released
	Percent     int    // of the pair, on the target
	Generation  uint64 // of the route that set it
	Pending     bool   // what was asked for last is not served yet
	Failing     string // why the routers cannot be told; empty when they can
	Behind      string // why the routers did not take the latest route, whoever changed it; empty when they did
	BehindSince time.Time
}

// Capacity is what the fleet can still place for the target.
type Capacity struct {
	Free     int // further replicas that fit; negative for no limit
	Hardware string
	Shared   HardwareShare // with the source
}

// EffectKind is what an effect does.
type EffectKind string

// The three effects. Each is a level, so doing it again changes nothing.
const (
	SetBounds    EffectKind = "set bounds"    // of Deployment; nil leaves one side alone
	SetSplit     EffectKind = "set split"     // Percent of the pair on the target
	ReleaseSplit EffectKind = "release split" // Percent of the pair on the target, as standing weights
)

// Effect is one change to the world.
type Effect struct {
	Kind       EffectKind
	Deployment string
	Min, Max   *int
	Lifts      bool  // the target's ceiling: recorded in the same write, so that it is done once
	Seen       *Seen // an edit of either side's bounds in between makes the effect void; nil where none can
	Percent    int
}

// Seen are the bounds of both sides as a decision saw them.
type Seen struct{ Source, Target Bounds }

// Decision is what Decide returns: the next record, the effects that follow it,
// the events that tell it, and when to decide again at the latest. The record and
// its events are stored in one write before any effect is tried. An effect that the
// world does not show yet is asked for again by the next decision: a caller that
// gets the same effects twice waits its own back-off, or for a change, in between.
type Decision struct {
	Rollout Rollout
	Effects []Effect
	Events  []Event
	Due     time.Time // zero: only when something else happens
	Changed bool      // Rollout differs from what was given
}

// noTime is an instant that is not set.
var noTime = time.Time{}

func ptr[T any](v T) *T { return &v }
