package forgetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Call names what is asked of a forge, after the methods of the port.
type Call string

// The calls. Any stands for each of them.
const (
	Any             Call = ""
	CallRepository  Call = "Repository"
	CallOpen        Call = "Open"
	CallClosed      Call = "Closed"
	CallPullRequest Call = "PullRequest"
	CallFiles       Call = "Files"
	CallComments    Call = "Comments"
	CallComment     Call = "Comment"
	CallEditComment Call = "EditComment"
	CallReact       Call = "React"
	CallReviews     Call = "Reviews"
	CallStatuses    Call = "Statuses"
	CallSetStatus   Call = "SetStatus"
	CallRole        Call = "Role"
	CallTeams       Call = "Teams"
	CallSelf        Call = "Self"     // who the token belongs to; over HTTP only
	callAppToken    Call = "AppToken" // over HTTP only
	callUser        Call = "User"     // GitLab's look-up of an id
)

// Fault is what goes wrong with one call.
type Fault struct {
	kind       faultKind
	status     int
	retryAfter time.Duration
	view       *state
}

type faultKind int

const (
	noFault faultKind = iota
	answers
	hangs
	loses
	stale
)

// Answer refuses a call with an HTTP status, without an effect.
func Answer(status int) Fault { return Fault{kind: answers, status: status} }

// Limit refuses a call because of too many: 429, or GitHub's 403, with a time to wait.
func Limit(status int, retryAfter time.Duration) Fault {
	return Fault{kind: answers, status: status, retryAfter: retryAfter}
}

// Hang lets a call wait until its context ends.
func Hang() Fault { return Fault{kind: hangs} }

// Lost lets a call have its effect and loses the answer.
func Lost() Fault { return Fault{kind: loses} }

// Stale lets a reading call see the world as it is now, whatever is written until then.
func (w *World) Stale() Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Fault{kind: stale, view: w.state.clone()}
}

// Next lets the next calls of a kind fail, one fault each, in this order.
func (w *World) Next(call Call, faults ...Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[call] = append(w.faults[call], faults...)
}

// Always lets all calls of a kind fail until Heal.
func (w *World) Always(call Call, fault Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.always[call] = fault
}

// Heal takes all faults away.
func (w *World) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.faults)
	clear(w.always)
}

// Calls counts the calls of a kind that came in, the failed ones too; Any is all.
func (w *World) Calls(call Call) int { return w.count(w.calls, call) }

// Writes counts the writes of a kind that had an effect, by adaptors and not by the
// test's script; Any is all.
func (w *World) Writes(call Call) int { return w.count(w.writes, call) }

// NotModified counts the answers that told an HTTP client that nothing is new.
func (w *World) NotModified() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notMod
}

func (w *World) count(of map[Call]int, call Call) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if call != Any {
		return of[call]
	}
	sum := 0
	for _, n := range of {
		sum += n
	}
	return sum
}

// problem is a refusal as a forge would word it.
type problem struct {
	status     int
	message    string
	retryAfter time.Duration
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s", p.status, p.message) }

// errLost is an answer that does not arrive.
var errLost = errors.New("the connection was reset before the answer")

func (w *World) take(call Call) Fault {
	w.calls[call]++
	for _, key := range []Call{call, Any} {
		if queue := w.faults[key]; len(queue) > 0 {
			w.faults[key] = queue[1:]
			return queue[0]
		}
		if f, ok := w.always[key]; ok {
			return f
		}
	}
	return Fault{}
}

// read lets a call see the state, or fail.
func (w *World) read(ctx context.Context, call Call, act func(s *state) error) error {
	return w.perform(ctx, call, act, func() {})
}

// write lets a call change the state and counts it when it did.
func (w *World) write(ctx context.Context, call Call, act func(s *state) error) error {
	return w.perform(ctx, call, act, func() { w.writes[call]++ })
}

func (w *World) perform(ctx context.Context, call Call, act func(s *state) error, count func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	fault := w.take(call)
	switch fault.kind {
	case answers:
		w.mu.Unlock()
		return &problem{status: fault.status, message: http.StatusText(fault.status), retryAfter: fault.retryAfter}
	case hangs:
		w.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	case noFault, loses, stale:
	}
	defer w.mu.Unlock()
	s := w.state
	if fault.kind == stale {
		s = fault.view
	}
	if err := act(s); err != nil {
		return err
	}
	count()
	if fault.kind == loses {
		return errLost
	}
	return nil
}
