package rollout

import (
	"fmt"
	"time"
)

// Edit is a person's change of the split that a rollout holds, made on purpose and
// against its lock. While it stands nothing of the engine moves the split.
type Edit struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	From   int       `json:"from"` // percent of the pair on the target that the rollout had set
	To     int       `json:"to"`   // and that the person set
}

// BreakGlass records a person's edit of the locked split from one percent of the pair
// to another. The caller writes the split itself in the same commit. A working rollout
// parks, one that is parked stays so without retries; before its start a rollout holds
// no split, and the edit is only told.
func (r Rollout) BreakGlass(actor, reason string, from, to int, now time.Time) (Rollout, []Event, error) {
	was := r.State
	next, err := r.accept(GlassBroken, now)
	if err != nil {
		return r, nil, err
	}
	told := r.brokenGlass(actor, reason, from, to, now)
	if was == Pending {
		return r, []Event{told}, nil
	}
	if next.Edit != nil {
		from = next.Edit.From // what the rollout had set, not the edit before
	}
	next.Edit = &Edit{By: actor, Reason: reason, At: now, From: from, To: to}
	next.Hold, next.RetryAt, next.RetryUntil = nil, noTime, noTime
	d := &decider{r: next, now: now}
	d.tell(told)
	if !was.Parked() {
		d.parked(AbortedByOperator, fmt.Sprintf("%s set the split from %d%% to %d%% by hand%s. It stays there: no hold and no circuit breaker moves it. Resume to do step %d again at %d%%, or cancel to keep it", actor, from, to, because(reason), next.Step+1, next.Rung().Percent), nil)
	}
	return d.r, d.events, nil
}

// brokenGlass is the row that tells an edit of a locked split.
func (r Rollout) brokenGlass(actor, reason string, from, to int, now time.Time) Event {
	e := r.event(now, EventBreakGlass, "%s broke the glass: target traffic of the locked split %d%% → %d%%%s", actor, from, to, because(reason))
	e.Level, e.Actor, e.Reason = LevelWarn, actor, reason
	e.OldPercent, e.NewPercent = ptr(from), ptr(to)
	return e
}
