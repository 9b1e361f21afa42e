package rollout

import (
	"fmt"
	"time"
)

// Level of an event.
type Level string

// The levels of the feed.
const (
	LevelDebug Level = "DEBUG"
	LevelInfo  Level = "INFO"
	LevelWarn  Level = "WARN"
	LevelError Level = "ERROR"
)

// ItselfActor is the actor of what a rollout does by itself, such as raising a floor.
const ItselfActor = "rollout"

// EventType names what happened, in the style subject.verb.
type EventType string

// The events of a rollout. The first six and their texts are published by the
// platform; the others are ours in the same style.
const (
	EventCreated          EventType = "rollout.created"
	EventStarted          EventType = "rollout.started"
	EventTrafficShifted   EventType = "rollout.traffic_shifted"
	EventSystemPaused     EventType = "rollout.system_paused"
	EventCanceled         EventType = "rollout.canceled"
	EventCanceledComplete EventType = "rollout.canceled_complete"
	EventPauseRequested   EventType = "rollout.pausing"
	EventPaused           EventType = "rollout.paused"
	EventResumed          EventType = "rollout.resumed"
	EventRetried          EventType = "rollout.retried"
	EventPromoted         EventType = "rollout.promoted"
	EventTargetScaled     EventType = "rollout.target_scaling"
	EventTargetReady      EventType = "rollout.target_ready"
	EventCapacityLimited  EventType = "rollout.capacity_limited"
	EventHeld             EventType = "rollout.split_held"
	EventPropagated       EventType = "rollout.propagated"
	EventDrainWaits       EventType = "rollout.drain_waiting"
	EventSourceDrained    EventType = "rollout.source_drained"
	EventSourceHeld       EventType = "rollout.source_held"
	EventBreakerTripped   EventType = "rollout.breaker_tripped"
	EventBreakGlass       EventType = "endpoint.break_glass"
	EventSoakAgain        EventType = "rollout.soak_restarted"
	EventGateSkipped      EventType = "rollout.gate_skipped"
	EventStepPassed       EventType = "rollout.step_passed"
	EventCompleted        EventType = "rollout.completed"
	EventDeleted          EventType = "rollout.deleted"
)

// Event is one row of an endpoint's feed. The store gives it its id and place.
type Event struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	ProjectID  string    `json:"projectId"`
	EndpointID string    `json:"endpointId"`
	Deployment string    `json:"deployment,omitempty"`
	Subject    string    `json:"subject,omitempty"` // the rollout, on rollout events
	Type       EventType `json:"type"`
	Level      Level     `json:"level"`
	Message    string    `json:"message"`
	Name       string    `json:"name,omitempty"`
	Actor      string    `json:"actor,omitempty"` // the key that asked
	Reason     string    `json:"reason,omitempty"`
	Status     string    `json:"status,omitempty"`
	Paths      []string  `json:"paths,omitempty"`
	Step       *int      `json:"step,omitempty"`
	OldPercent *int      `json:"oldPercent,omitempty"`
	NewPercent *int      `json:"newPercent,omitempty"`
	OldReplica *int      `json:"oldReplicas,omitempty"`
	NewReplica *int      `json:"newReplicas,omitempty"`
}

// event makes a row about the rollout at its current step.
func (r Rollout) event(now time.Time, t EventType, format string, args ...any) Event {
	e := Event{At: now, ProjectID: r.ProjectID, EndpointID: r.EndpointID, Subject: r.ID, Type: t, Level: LevelInfo, Message: fmt.Sprintf(format, args...)}
	if r.State != Pending {
		step := r.Step
		e.Step = &step
	}
	return e
}
