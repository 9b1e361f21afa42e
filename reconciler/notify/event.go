package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Event is something that happened.
type Event struct {
	Key        []string  // what tells it from all others: its kind, and such as the rollout, its state and step
	Kind       string    // family.what, such as rollout.parked
	At         time.Time // when it happened
	Repository string
	Stack      string
	Endpoint   string
	Commit     string
	RolloutID  string
	Severity   Severity
	Title      string // one line
	Text       string
	URL        string // where to look, http or https
	Fields     map[string]string
	Reminder   int // the how manieth of one park; 0 for the event itself
}

// Severity is how much an event matters.
type Severity string

// The severities. An urgent one waits for a person.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Urgent  Severity = "urgent"
)

// ID is the key as one word of 32 hex digits. Keys of which no part differs have the same
// one; ["a", "b"] and ["a b"] have not.
func (e Event) ID() string {
	parts := append([]string{}, e.Key...)
	if e.Reminder > 0 {
		parts = append(parts, "reminder", fmt.Sprint(e.Reminder))
	}
	return digest(parts)
}

// about is the key without the reminder's number.
func (e Event) about() string { return digest(e.Key) }

func digest(parts []string) string {
	text, err := json.Marshal(parts)
	if err != nil { // texts always encode
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Notifier sends one event to one place. Its errors tell what helps: *Refused (this event
// never arrives there), *Later (not before an instant), any other (try again).
type Notifier interface {
	Notify(ctx context.Context, e Event) error
}

// Refused means that a receiver will never take this event, whatever it does with others.
type Refused struct{ Why string }

func (r *Refused) Error() string { return "the receiver refuses this notification: " + r.Why }

// Later means that a receiver wants to be left alone for a while.
type Later struct {
	After time.Duration
	Why   string
}

func (l *Later) Error() string {
	return fmt.Sprintf("the receiver asks to wait for %s: %s", l.After, l.Why)
}

// Destination is a place that hears of events.
type Destination struct {
	Name     string
	Notifier Notifier
	Events   []string      // kinds, or family.* for all of a family; empty for all
	Remind   time.Duration // between two reminders of one park; 0 for none
}

// Wants reports whether a kind is heard of there.
func (d Destination) Wants(kind string) bool {
	for _, e := range d.Events {
		family, all := strings.CutSuffix(e, "*")
		if e == kind || all && strings.HasPrefix(kind, family) {
			return true
		}
	}
	return len(d.Events) == 0
}
