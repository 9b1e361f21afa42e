package rehearsal

import (
	"errors"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// ana is the person who presses the controls.
var ana = engine.Caller{Name: "ana"}

// ask has a person ask the engine for something. What is not answered, for whatever
// reason, is asked again, as every client does; what is refused stands in the
// transcript.
func (w *World) ask(what string, do func() error) { w.askAgain(what, do, 0) }

// maxAsks is after how many tries without an answer a person gives up.
const maxAsks = 40

func (w *World) askAgain(what string, do func() error, tries int) {
	err := errDown
	if w.engine != nil && !w.power.dead {
		was := w.byHand
		w.byHand = true
		err = do()
		w.byHand = was
	}
	var refused *engine.Error
	switch {
	case err == nil:
		return
	case errors.As(err, &refused):
		w.say("refused", "%s", refused.Message)
		return
	case tries >= maxAsks:
		w.say("given", "%s: nobody answers, given up", what)
		return
	}
	wait := 5 * time.Second
	if w.power.dead || errors.Is(err, rollout.ErrFenced) {
		wait = 0 // the next process takes it
	}
	w.pending = append(w.pending, command{text: what + ", once more", at: w.now.Add(wait), do: func(w *World) { w.askAgain(what, do, tries+1) }})
	w.inOrder()
}

// create makes a rollout of the world's pair, once however often it is asked for.
func create(s rollout.Spec) func(*World) {
	return func(w *World) {
		s.Source, s.Target = w.source.id, w.target.id
		by := ana
		by.IdempotencyKey, by.Digest = w.newID("key"), "d"
		w.ask("create", func() error {
			held, open := w.record.ID, w.open()
			r, err := w.engine.CreateRollout(w.ctx, by, w.endpoint.ID, s)
			if err == nil && open && r.ID != held {
				w.watch.blame(4, "a second rollout was accepted while %s is open", held)
			}
			return err
		})
	}
}

func start(w *World) {
	id := w.record.ID
	w.ask("start", func() error {
		_, err := w.engine.StartRollout(w.ctx, ana, w.endpoint.ID, id)
		return err
	})
}

func remove(w *World) {
	id := w.record.ID
	w.ask("delete", func() error {
		state := w.record.State
		err := w.engine.DeleteRollout(w.ctx, ana, w.endpoint.ID, id, "")
		if err == nil && state != rollout.Pending && !state.Terminal() {
			w.watch.blame(7, "the record of a rollout in %s was deleted", state)
		}
		return err
	})
}

// control presses a control; etag is empty for whatever version stands.
func (w *World) control(name, reason, etag string) {
	id := w.record.ID
	if name == "promote" && etag == "" {
		etag = rollout.ETag(w.record.Version) // promoted once however often it is asked
	}
	w.ask(name, func() error {
		r, err := w.engine.ControlRollout(w.ctx, ana, w.endpoint.ID, id, etag, w.press(name, reason))
		if err == nil {
			w.watch.accepted(name, r)
		}
		return err
	})
}

func (w *World) press(name, reason string) engine.Control {
	switch name {
	case "pause":
		return w.engine.Pause(reason)
	case "resume":
		return w.engine.Resume()
	case "promote":
		return w.engine.Promote()
	}
	return w.engine.Cancel(reason)
}

// stale presses a control on what somebody read before the last change. It must be
// refused, whatever the state.
func (w *World) stale(name, reason string) {
	if w.record.Version < 2 || w.engine == nil || w.power.dead {
		return
	}
	was := w.byHand
	w.byHand = true
	defer func() { w.byHand = was }()
	_, err := w.engine.ControlRollout(w.ctx, ana, w.endpoint.ID, w.record.ID, rollout.ETag(w.record.Version-1), w.press(name, reason))
	var refused *engine.Error
	switch {
	case err == nil:
		w.watch.blame(8, "a %s with a stale etag was accepted", name)
	case errors.As(err, &refused):
		w.say("refused", "%s", refused.Message)
	}
}

// open reports whether a rollout holds the endpoint.
func (w *World) open() bool { return w.record.ID != "" && !w.record.State.Terminal() }

// edit is an operator's change of a side's bounds.
func (w *World) edit(s *side, b rollout.Bounds) {
	w.ask("bound", func() error {
		w.watch.edited(s, b)
		open := w.open()
		_, err := w.engine.UpdateDeployment(w.ctx, ana, w.endpoint.ID, s.id, "", engine.DeploymentChange{Min: &b.Min, Max: &b.Max})
		if err == nil && b.Stopped() && open && s.name != "other" {
			w.watch.blame(4, "the %s was stopped while a rollout is open", s.name)
		}
		return err
	})
}

// trySplit is somebody's try to move a split that a rollout holds.
func (w *World) trySplit(percent int) {
	if !w.open() || w.engine == nil || w.power.dead {
		return // it is theirs to move
	}
	split := []rollout.Weight{{Deployment: w.source.id, Weight: float64(100 - percent)}, {Deployment: w.target.id, Weight: float64(percent)}}
	_, err := w.engine.UpdateEndpoint(w.ctx, ana, w.endpoint.ID, "", engine.EndpointChange{Split: &split})
	var refused *engine.Error
	switch {
	case err == nil:
		w.watch.blame(4, "the split of a rollout was moved by hand")
	case errors.As(err, &refused):
		w.say("refused", "%s", refused.Message)
	}
}

// must is for calls on the world's own parts. A deployment that is gone meanwhile is
// nothing to stumble over.
func (w *World) must(err error) {
	if err != nil {
		w.say("refused", "%s", err)
	}
}

// kill ends up to n ready replicas of a side.
func (w *World) kill(s *side, n int) {
	w.watch.disturbed()
	status, err := w.fleet.Observe(w.ctx, s.id)
	w.must(err)
	for _, r := range status.Replicas {
		if r.State == rollout.ReplicaReady && n > 0 {
			n--
			w.must(w.fleet.Kill(r.ID))
		}
	}
}

// failStarting crashes what loads.
func (w *World) failStarting(s *side) {
	status, err := w.fleet.Observe(w.ctx, s.id)
	w.must(err)
	for _, r := range status.Replicas {
		if r.State == rollout.ReplicaStarting {
			w.must(w.fleet.Kill(r.ID))
		}
	}
}

// resize makes so many further replicas of the target fit.
func (w *World) resize(free int) {
	status, err := w.fleet.Observe(w.ctx, w.target.id)
	w.must(err)
	used := status.Scheduled
	if w.shared {
		for _, s := range w.sides {
			if s != w.target {
				status, err := w.fleet.Observe(w.ctx, s.id)
				w.must(err)
				used += status.Scheduled
			}
		}
	}
	w.capacity(used + free)
}

func (w *World) capacity(n int) {
	w.watch.disturbed()
	w.must(w.fleet.SetCapacity(w.hardwareOf(w.target), n))
}

// mend takes every fault away and leaves a patient operator to see the rollout to its
// end.
func mend(w *World) {
	w.store.down, w.store.fails, w.store.loses, w.power.slow, w.power.at = false, 0, 0, 0, nil
	w.fleets.down, w.fleets.deaf, w.meter.down, w.routers.failing, w.routers.late = false, false, false, "", 0
	for _, s := range w.sides {
		w.must(w.fleet.Unstick(s.id))
		s.cold, s.loops = min(s.cold, s.budget), 0
		w.must(w.fleet.SetCapacity(w.hardwareOf(s), -1))
		if b, ok := w.fleets.bounds[s.id]; ok {
			w.must(w.fleet.Ensure(w.ctx, rollout.Workload{Deployment: s.id, Model: "m/" + s.name, Config: w.mended(s), Bounds: b}))
		}
	}
	w.meter.change(func(c *conditions) {
		c.rate, c.blind, c.mute, c.values = 1000, false, map[string]bool{}, map[signal]float64{}
		for _, s := range w.sides {
			for _, m := range rollout.Metrics() {
				c.values[signal{s.id, m}] = 0.5
			}
		}
	})
	w.billing.lapse, w.billing.down = "", false
	w.watch.faulty()
	w.triggers = nil
	w.patience = &patience{next: w.now}
	w.patience.look(w)
}

// mended is a side's config with starts that take their time, and no more, and drains
// that end.
func (w *World) mended(s *side) rollout.ServingConfig {
	s.drain = min(s.drain, time.Minute)
	c := w.serving(s)
	c.Simulated.ColdStart = s.cold
	return c
}

// patience is an operator who mends what a park says and resumes, who cancels what
// cannot be had, and who waits for the end.
type patience struct {
	next  time.Time // when to look again
	looks int
	stuck int // parks on an edit of the bounds
	done  bool
}

// operatorLooks is how a look of the patient operator stands in the script.
const operatorLooks = "the operator looks"

// disturb brings the next look forward: the engine was away.
func (p *patience) disturb(w *World) {
	if p == nil || p.done {
		return
	}
	p.next = w.now
	for i := range w.pending {
		if w.pending[i].text == operatorLooks {
			w.pending[i].at = w.now
		}
	}
	w.inOrder()
}

// maxLooks is how often the operator looks, 20 minutes apart, before the rollout counts
// as one that never ends.
const maxLooks = 100

func (p *patience) look(w *World) {
	p.next = w.now.Add(20 * time.Minute)
	p.looks++
	r := w.record
	switch {
	case r.ID == "" || r.State.Terminal():
		p.done = w.quiet() && p.looks > 1 || p.looks > maxLooks
	case p.looks > maxLooks:
		w.watch.blame(7, "the rollout never ends: %s in %s of step %d, %s", r.State, r.Phase, r.Step+1, why(r))
		p.done = true
	case r.State == rollout.Pending:
		p.begin(w)
	case r.State.Parked():
		p.mend(w, r)
	}
	if p.done {
		return
	}
	w.pending = append(w.pending, command{text: operatorLooks, at: p.next, do: func(w *World) { p.look(w) }})
	w.inOrder()
}

func why(r rollout.Rollout) string {
	if r.Condition == nil {
		return "no condition"
	}
	return r.Condition.Message
}

// begin starts a rollout, or deletes one that cannot start.
func (p *patience) begin(w *World) {
	if p.looks > 6 {
		remove(w)
		return
	}
	start(w)
}

// mend does what a park asks for and resumes.
func (p *patience) mend(w *World, r rollout.Rollout) {
	if c := r.Condition; c != nil && c.Category == rollout.PolicyInfeasible {
		if p.stuck++; p.stuck > 3 {
			w.control("cancel", "not to be had", "")
			return
		}
		if b := w.deployments[r.Spec.Target].Bounds; b.Max < r.Journey.LandingMax {
			w.edit(w.target, rollout.Bounds{Min: b.Min, Max: r.Journey.LandingMax})
		}
	}
	w.control("resume", "", "")
}
