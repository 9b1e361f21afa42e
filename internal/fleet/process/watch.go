package process

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// draining is the state that the runner looks for.
const draining = rollout.ReplicaDraining

// watch is the life of one process: probes, the cold-start budget, its end.
type watch struct {
	r       *runner
	c       *child
	ready   time.Time // since when it answers; zero while it does not
	ever    bool      // it was ready before
	refused int       // probes in a row that a ready one failed
	said    string    // the last reason for not being ready
	budget  *time.Timer
	next    *time.Timer // the next probe
	answers chan error  // of the probe under way; holds one, so no probe waits
}

// newWatch begins with a probe at once and a whole budget.
func newWatch(r *runner, c *child) *watch {
	w := &watch{
		r: r, c: c, budget: time.NewTimer(c.ColdStart), next: time.NewTimer(0), answers: make(chan error, 1),
		ready: c.answered, ever: !c.answered.IsZero(),
	}
	if w.ever {
		w.budget.Stop()
	}
	return w
}

// run watches until the process ends, is given up, is told to end or is left.
func (w *watch) run() fate {
	ctx, cancel := context.WithCancel(w.r.f.hurried)
	defer cancel()
	defer w.budget.Stop()
	defer w.next.Stop()
	for {
		select {
		case <-w.c.exited:
			return w.exit()
		case <-w.r.ended:
			return w.r.finish(w.c)
		case <-w.r.f.left.Done():
			return fate{kind: handed}
		case <-w.budget.C:
			w.r.f.terminate(w.c)
			return fate{kind: failed, why: w.overrun()}
		case <-w.next.C:
			w.rotate()
			go func() { w.answers <- w.r.f.prober.ask(ctx, w.c.Port, w.c.Probe) }()
		case err := <-w.answers:
			w.judge(err)
			w.next.Reset(w.c.Probe.Interval)
		}
	}
}

// exit tells a lost port from a failure.
func (w *watch) exit() fate {
	when := "before it was ready"
	switch {
	case w.ever:
		when = "after it was ready"
		w.r.clashes = 0
	case w.r.clashes < portTries && portTaken(w.c.Port):
		w.r.clashes++
		w.r.f.cfg.Logger.Info("somebody took the replica's port; another is tried", "replica", w.r.id, "port", w.c.Port)
		return fate{kind: clashed}
	}
	end := fate{kind: failed, why: exitMessage(w.c.how, when)}
	if !w.ready.IsZero() {
		end.served = time.Since(w.ready)
	}
	return end
}

// judge takes one probe's answer into account. A single failed probe of a ready
// replica changes nothing; the declared number of them in a row does, and gives
// it a new budget to answer again before it is restarted.
func (w *watch) judge(err error) {
	select {
	case <-w.c.exited:
		return // whoever answered was not this process
	default:
	}
	switch {
	case err == nil && w.ready.IsZero():
		w.ready, w.ever, w.refused, w.said = time.Now(), true, 0, ""
		w.budget.Stop()
		w.r.f.change(func(now time.Time) { w.r.f.roster.Ready(w.r.id, now) })
	case err == nil:
		w.refused = 0
	case w.ready.IsZero():
		w.unready("Starting: " + err.Error())
	default:
		if w.refused++; w.refused >= w.c.Probe.Failures {
			w.ready, w.refused = time.Time{}, 0
			w.budget.Reset(w.c.ColdStart)
			w.unready(fmt.Sprintf("Not ready any more: %s, %d times in a row", err, w.c.Probe.Failures))
		}
	}
}

// unready reports the reason when it is a new one.
func (w *watch) unready(why string) {
	if why == w.said {
		return
	}
	w.said = why
	w.r.f.change(func(now time.Time) { w.r.f.roster.Unready(w.r.id, why, now) })
}

// overrun says that the budget is over.
func (w *watch) overrun() string {
	if w.ever {
		return fmt.Sprintf("Did not answer again within %s", w.c.ColdStart)
	}
	return fmt.Sprintf("Not ready within its cold start of %s", w.c.ColdStart)
}

// rotate looks at the log as often as at the process.
func (w *watch) rotate() {
	if err := w.r.f.logs.rotate(w.r.id); err != nil {
		w.r.f.cfg.Logger.Warn("a log cannot be rotated", "replica", w.r.id, "error", err)
	}
}
