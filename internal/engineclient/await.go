package engineclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Outcome is how a wait for a rollout ended.
type Outcome string

// The outcomes. Parked is not a failure: the rollout holds and waits for a person.
const (
	Completed Outcome = "completed"
	Canceled  Outcome = "canceled"
	WasParked Outcome = "parked"
)

// Result is a rollout at the end of a wait.
type Result struct {
	Rollout api.Rollout
	Outcome Outcome
}

// Change is what a poll found new.
type Change struct {
	Before  api.Rollout // the zero rollout on the first poll
	After   api.Rollout
	Elapsed time.Duration // since the wait began
	Polls   int           // so far, this one included
}

// Sink hears what a wait sees. It is called from the waiting goroutine, one call
// at a time, and must not block for long.
type Sink interface {
	Changed(Change)
	// Lost tells that polls fail since a while; the wait goes on. It is called once
	// for each loss, and Changed once the engine is back and something has changed.
	Lost(err error, elapsed time.Duration)
}

// Interrupted is a wait that its context ended. Last is what was seen last; the
// rollout goes on at the engine.
type Interrupted struct {
	Last api.Rollout
	Err  error
}

func (i *Interrupted) Error() string {
	return fmt.Sprintf("the wait for rollout %s ended while it was %s: %v; the rollout goes on at the engine", i.Last.ID, Short(i.Last.State), i.Err)
}

func (i *Interrupted) Unwrap() error { return i.Err }

// UnexpectedState is a state that this client does not know, seen in several polls
// in a row.
type UnexpectedState struct {
	Last  api.Rollout
	Polls int
}

func (u *UnexpectedState) Error() string {
	return fmt.Sprintf("rollout %s is in state %q, which this version does not know, in %d polls in a row; it is not waited for any longer. A newer version may know it", u.Last.ID, u.Last.State, u.Polls)
}

const (
	unknownPolls    = 5                // polls in an unknown state after which a wait stops
	gonePolls       = 2                // answers of 404 in a row after which a rollout is gone
	firstPoll       = time.Second      // between the first two polls
	slowestPoll     = 30 * time.Second // between two polls
	hostedInterval  = 3 * time.Minute  // of a step, when the engine does not tell
	fastestCeiling  = 200 * time.Millisecond
	pollsAStep      = 10 // at least, once the polls have slowed down
	slowdownPercent = 150
	closestPolls    = 50 * time.Millisecond // between a poll and one that an event asks for
)

// Await polls a rollout until it is COMPLETED, CANCELED or parked (PAUSED,
// SYSTEM_PAUSED). Polls come a second apart at first and slow down to a tenth of a
// step's wait, at most 30 s. Where the engine streams its events, one about the
// rollout asks for a poll at once: a hint that makes the wait end sooner, and never a
// reason to poll less, so that a stream which is missing, broken or silent costs only
// time. A network that fails or an engine that restarts is
// waited out for as long as ctx lasts; only ctx ends a wait early, with
// *Interrupted. Refusals other than a passing 404 end it with *api.Error.
func (c *Client) Await(ctx context.Context, endpoint, id string, sink Sink) (Result, error) {
	w := waiter{client: c, endpoint: endpoint, id: id, sink: sink, began: time.Now(), pause: firstPoll}
	if c.hints != nil {
		hint, leave := c.hints.join(endpoint, id) //nolint:contextcheck // the stream is shared and outlives one wait
		defer leave()
		w.hint = hint
	}
	return w.run(ctx)
}

type waiter struct {
	client       *Client
	endpoint, id string
	sink         Sink
	began        time.Time
	pause        time.Duration
	last         api.Rollout
	polls        int
	unknown      int
	gone         int
	lost         bool
	refused      time.Time       // since when the key is; zero while it is not
	hint         <-chan struct{} // asks for a poll; nil for none
}

func (w *waiter) run(ctx context.Context) (Result, error) {
	w.last.ID = w.id
	for {
		r, err := w.client.GetRollout(ctx, w.endpoint, w.id)
		w.polls++
		if ctx.Err() != nil && err != nil {
			return Result{Rollout: w.last}, &Interrupted{Last: w.last, Err: ctx.Err()}
		}
		if err != nil {
			if stop := w.failed(err); stop != nil {
				return Result{Rollout: w.last}, stop
			}
		} else if res, done, err := w.seen(r); done || err != nil {
			return res, err
		}
		if err := w.idle(ctx, w.next()); err != nil {
			return Result{Rollout: w.last}, &Interrupted{Last: w.last, Err: err}
		}
	}
}

// idle waits until the next poll is due, or an event asks for one.
func (w *waiter) idle(ctx context.Context, pause time.Duration) error {
	if err := sleep(ctx, min(pause, closestPolls)); err != nil || pause <= closestPolls {
		return err
	}
	t := time.NewTimer(pause - closestPolls)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	case <-w.hint:
	}
	return nil
}

// seen takes a poll's answer in.
func (w *waiter) seen(r api.Rollout) (Result, bool, error) {
	before := w.last
	w.last, w.gone, w.lost, w.refused = r, 0, false, time.Time{}
	if w.sink != nil && differs(before, r) {
		w.sink.Changed(Change{Before: before, After: r, Elapsed: time.Since(w.began), Polls: w.polls})
	}
	switch r.State {
	case StateCompleted:
		return Result{Rollout: r, Outcome: Completed}, true, nil
	case StateCanceled:
		return Result{Rollout: r, Outcome: Canceled}, true, nil
	case StatePaused, StateSystemPaused:
		return Result{Rollout: r, Outcome: WasParked}, true, nil
	case StatePending, StateRunning, StateStabilizing, StatePausing, StateCancelling:
		w.unknown = 0
		return Result{}, false, nil
	}
	w.unknown++
	if w.unknown >= unknownPolls {
		return Result{Rollout: r}, true, &UnexpectedState{Last: r, Polls: w.unknown}
	}
	return Result{}, false, nil
}

// failed decides whether a poll without an answer ends the wait.
func (w *waiter) failed(err error) error {
	var refused *api.Error
	if errors.As(err, &refused) {
		switch {
		case IsNotFound(err):
			w.gone++
			if w.gone >= gonePolls {
				return err
			}
			return nil
		case refused.Status == http.StatusUnauthorized && w.keyMayCome():
		case refused.Status < 500 && refused.Status != http.StatusNotFound && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout && refused.Status != http.StatusConflict:
			return err
		}
	}
	if !w.lost && w.sink != nil {
		w.sink.Lost(err, time.Since(w.began))
	}
	w.lost = true
	return nil
}

// keyMayCome reports whether a refused key may soon be followed by another one.
func (w *waiter) keyMayCome() bool {
	if w.refused.IsZero() {
		w.refused = time.Now()
	}
	return time.Since(w.refused) < w.client.keyGrace
}

// next is the pause before the next poll, drawn from the upper half of a ceiling
// that grows, so that many waiters do not poll in step.
func (w *waiter) next() time.Duration {
	ceiling := w.ceiling()
	pause := min(w.pause, ceiling)
	w.pause = min(w.pause*slowdownPercent/100, ceiling)
	if w.pause < firstPoll {
		w.pause = firstPoll
	}
	return pause/2 + rand.N(pause/2+1)
}

func (w *waiter) ceiling() time.Duration {
	step := hostedInterval
	if x := w.last.Sluice; x != nil && x.Soak != nil {
		step = time.Duration(*x.Soak)
	}
	return min(max(step/pollsAStep, fastestCeiling), slowestPoll)
}

// differs reports whether there is something new to tell.
func differs(a, b api.Rollout) bool {
	return a.State != b.State || orUnset(a.CurrentStep) != orUnset(b.CurrentStep) ||
		orUnset(a.CurrentTrafficPercent) != orUnset(b.CurrentTrafficPercent) ||
		phase(a) != phase(b) || category(a) != category(b)
}

// orUnset is a number, or −1 for one that is not there.
func orUnset(v *int) int {
	if v == nil {
		return -1
	}
	return *v
}

func phase(r api.Rollout) string {
	if r.Sluice == nil {
		return ""
	}
	return r.Sluice.Phase
}

func category(r api.Rollout) string {
	if r.Status.Condition == nil {
		return ""
	}
	return r.Status.Condition.Category
}
