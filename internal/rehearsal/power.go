package rehearsal

import (
	"errors"
	"time"
)

// errPower is what every call returns once the engine's process is dead.
var errPower = errors.New("the power is gone")

// errDown is what a port answers that is down.
var errDown = errors.New("connection refused")

// power counts the engine's outward calls (a commit, a workload, a route) and lets
// something happen at one of them: the engine dies before or after it took effect,
// somebody does something in between, or it takes long.
type power struct {
	w         *World
	calls     int
	taken     taken // what the world took of them
	dead      bool
	at        []surprise
	slow      time.Duration // each call takes so long
	meanwhile time.Time     // when something last came between
	busy      bool          // with a command: no other comes between
	applying  bool          // a route: whoever edits a split meanwhile waits for its lock
}

// surprise happens at one outward call.
type surprise struct {
	call int
	kind surpriseKind
	do   func(*World) // of between
}

type surpriseKind int

const (
	crashBefore surpriseKind = iota // the call never happened
	crashAfter                      // it happened, and nobody heard
	between                         // somebody else was faster
)

// through does an outward call.
func (p *power) through(what string, do func() error) error {
	if p.dead {
		return errPower
	}
	p.calls++
	if p.slow > 0 && what != "apply" {
		p.w.pass(p.slow)
	}
	if what == "apply" {
		p.applying = true
		defer func() { p.applying = false }()
	}
	for !p.busy && p.w.command() {
		continue // what is due now comes between a decision and its effect
	}
	if p.dead {
		return errPower
	}
	for i := 0; i < len(p.at); i++ {
		s := p.at[i]
		if s.call != p.calls {
			continue
		}
		p.at = append(p.at[:i:i], p.at[i+1:]...)
		i--
		switch s.kind {
		case crashAfter:
			_ = do()
			fallthrough
		case crashBefore:
			p.dead = true
			p.w.stats.Crashes++
			return errPower
		case between:
			p.meanwhile = p.w.now
			was := p.busy
			p.busy = true
			s.do(p.w)
			p.busy = was
			if p.dead {
				return errPower
			}
		}
	}
	err := do()
	if err == nil {
		p.taken.count(what)
	}
	return err
}

// after adds a surprise at the n-th call from now.
func (p *power) after(n int, kind surpriseKind, do func(*World)) {
	p.at = append(p.at, surprise{p.calls + n, kind, do})
}
