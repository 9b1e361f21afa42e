package engine

import (
	"context"
	"errors"
	"time"
)

// Stepper works an engine by hand instead of by Run: everything happens in the
// caller's goroutine, in an order that two runs agree upon, and nothing waits. It is
// how a rehearsal plays hours in milliseconds.
type Stepper struct {
	e      *Engine
	tick   time.Time // when what failed is tried again
	detach func()
}

// Stepper takes up every open rollout where it was and follows the fleet from now on,
// as Run does. Close ends it. An engine is worked by Run or by one Stepper, not both.
func (e *Engine) Stepper(ctx context.Context) (*Stepper, error) {
	s := &Stepper{e: e, tick: e.Now().Add(e.Poll), detach: e.Fleet.Subscribe(e.routes.changed)}
	if err := e.takeUp(ctx); err != nil {
		s.detach()
		return nil, err
	}
	return s, nil
}

// Close stops following the fleet.
func (s *Stepper) Close() { s.detach() }

// maxTurns bounds what one Step does, so that a bug cannot spin.
const maxTurns = 4096

// errSpinning is a Step that would never end.
var errSpinning = errors.New("the engine does not come to rest at one instant: this is a bug")

// Step does everything that is due now and returns when something is due next.
// pending is false when nothing is to come by itself. A change of the fleet, a command
// or a clock that went back may bring something earlier: call Step again after each.
func (s *Stepper) Step(ctx context.Context) (next time.Time, pending bool, err error) {
	for range maxTurns {
		if err := s.e.fence.gone(); err != nil {
			return time.Time{}, false, err
		}
		now := s.e.Now()
		if s.tickDue(now) {
			s.e.routes.repeat(ctx)
		}
		s.e.routes.followAll(ctx)
		id, wait := s.e.runner.take(now)
		if id != "" {
			s.e.runner.turn(ctx, id)
			continue
		}
		dirty, later := s.e.routes.waiting()
		if dirty {
			continue
		}
		if wait >= 0 {
			next, pending = now.Add(wait), true
		}
		if later && (!pending || s.tick.Before(next)) {
			next, pending = s.tick, true
		}
		return next, pending, nil
	}
	return time.Time{}, false, errSpinning
}

// tickDue moves the tick on and reports whether it came. A clock that went back does
// not put it off.
func (s *Stepper) tickDue(now time.Time) bool {
	if s.tick.After(now.Add(s.e.Poll)) {
		s.tick = now.Add(s.e.Poll)
	}
	if now.Before(s.tick) {
		return false
	}
	s.tick = now.Add(s.e.Poll)
	return true
}
