package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// rival is an engine whose place another has taken: frozen, or awake and about to learn.
type rival struct {
	engine *engine.Engine
	hand   *engine.Stepper
	store  *storePort
	frozen bool
	before taken // what the world had taken when its place was

	// onItsWay is 1 for an engine that was at a call when it lost its place: no lease can
	// call a workload back that the fleet is just being told. It is the level of a record
	// that the next engine has read too.
	onItsWay int
}

// Held asks SQLite only once there is something to learn: it is asked before each effect.
func (m *memo) Held(ctx context.Context) error {
	if m.reads == Remembered && !m.taken {
		return nil
	}
	return m.SQLite.Held(ctx)
}

// parseRival reads what happens to the engine's process.
func parseRival(words []string, _ string) (func(*World), error) {
	switch strings.Join(words, " ") {
	case "restart":
		return restart, nil
	case "freeze":
		return freeze, nil
	case "second engine":
		return secondEngine, nil
	case "thaw":
		return thaw, nil
	}
	return nil, nil //nolint:nilnil // another parser knows it
}

// restart ends the engine in order and starts it anew, and tells what that wrote.
func restart(w *World) {
	before := w.power.taken
	w.retry = w.now
	w.revive()
	w.say("effect", "the new process %s", w.power.taken.since(before))
}

// freeze stops the engine's process where it is; nobody answers.
func freeze(w *World) {
	if w.hand == nil || w.rival != nil {
		return
	}
	w.rival = &rival{engine: w.engine, hand: w.hand, store: w.store, frozen: true}
	w.engine, w.hand = nil, nil
}

// secondEngine starts another engine on the same store, which takes it over.
func secondEngine(w *World) {
	if w.rival == nil && w.hand == nil || w.rival != nil && !w.rival.frozen {
		return // no first one, or there is a second already
	}
	if w.rival == nil {
		w.rival = &rival{engine: w.engine, hand: w.hand, store: w.store, onItsWay: 1}
		w.engine, w.hand = nil, nil
	}
	disk, err := w.store.TakeOver(w.ctx, "the second engine")
	w.must(err)
	w.store.taken = true
	w.store = &storePort{memo: newMemo(disk, w.store.reads), w: w}
	w.retry = w.now
	w.revive()
	w.rival.before = w.power.taken
}

// thaw lets the frozen process go on: as the engine if nobody took its place.
func thaw(w *World) {
	r := w.rival
	if r == nil || !r.frozen {
		return
	}
	if !r.store.taken {
		w.engine, w.hand, w.rival = r.engine, r.hand, nil
		return
	}
	r.frozen = false
}

// learn works an engine whose place was taken until it knows. It must do nothing more.
func (w *World) learn() {
	r := w.rival
	if r == nil || r.frozen || !r.store.taken {
		return
	}
	r.before = w.power.taken
	if _, _, err := r.hand.Step(w.ctx); err != nil {
		w.learned(err)
	} else if w.power.taken != r.before {
		w.watch.blame(8, "an engine whose place was taken %s", w.power.taken.since(r.before))
	}
}

// learned ends an engine that knows that its place was taken.
func (w *World) learned(err error) {
	did := w.power.taken.since(w.rival.before)
	if now := w.power.taken; now.writes != w.rival.before.writes || now.routes != w.rival.before.routes || now.workloads > w.rival.before.workloads+w.rival.onItsWay {
		w.watch.blame(8, "an engine whose place was taken %s", did)
	}
	if !errors.Is(err, rollout.ErrFenced) {
		w.watch.blame(8, "an engine whose place was taken stumbles: %v", err)
	}
	w.say("effect", "the first engine %s; %s", did, err)
	w.rival.hand.Close()
	w.rival = nil
}

// taken counts what the world took from an engine: commits, workloads and routes.
type taken struct{ writes, workloads, routes int }

func (t *taken) count(what string) {
	switch what {
	case "commit":
		t.writes++
	case "apply":
		t.routes++
	default:
		t.workloads++
	}
}

// since says what was taken since then.
func (t taken) since(before taken) string {
	return fmt.Sprintf("writes %d row(s) of state, tells %d workload(s) and %d route(s)", t.writes-before.writes, t.workloads-before.workloads, t.routes-before.routes)
}
