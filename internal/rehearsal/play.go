package rehearsal

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Wrong makes an engine a wrong one, by what stands between it and the world.
type Wrong func(c *engine.Config)

// Horizon ends plays that would go on for ever.
const Horizon = 60 * 24 * time.Hour

// Result is what a play came to.
type Result struct {
	Lines      []string        // the transcript
	Violations []Violation     // what was seen and must never be
	Record     rollout.Rollout // the last rollout, as stored
	Events     []rollout.Event // its feed
	Refused    bool            // the script's rollout could not be created
	Stats      Stats
}

// Play plays a script on a store in memory, which it clears first.
func Play(ctx context.Context, s Script, setup Setup) (Result, error) {
	if err := setup.Disk.Clear(ctx); err != nil {
		return Result{}, err
	}
	w, err := newWorld(ctx, s, setup)
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.close()) //nolint:contextcheck // the simulated fleet's drains have a life of their own
		}
		return Result{}, err
	}
	w.run(Epoch.Add(Horizon)) //nolint:contextcheck // as above
	w.lines = append(w.lines, w.summary())
	w.stats.Calls = w.power.calls
	out := Result{Lines: w.lines, Violations: w.watch.violations, Record: w.record, Events: w.watch.events, Refused: w.record.ID == "" && !w.deleted, Stats: w.stats}
	return out, w.close() //nolint:contextcheck // as above
}
