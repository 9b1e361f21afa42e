package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// stepped plays one rollout by hand on a clock of its own, and returns its feed with
// the instants at which each row came.
func stepped(t *testing.T) []string {
	t.Helper()
	ctx := t.Context()
	now := time.Date(2026, 9, 16, 20, 39, 45, 0, time.UTC)
	clock := func() time.Time { return now }
	disk, err := store.OpenMemory(ctx)
	require.NoError(t, err)
	defer func() { require.NoError(t, disk.Close()) }()
	f, err := simulated.New(simulated.Config{Pools: pools(), Now: clock})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close(context.Background())) }()
	serial := 0
	serving := func(id, model string) rollout.ServingConfig {
		return fleet.WithDefaults(rollout.ServingConfig{ID: id, Models: []string{model}, Hardware: hardware, Simulated: rollout.SimulatedServing{ColdStart: coldStart}})
	}
	e := engine.New(engine.Config{
		Store: disk, Fleet: f, Router: newRouters(), Meter: &readings{}, Timings: rollout.DefaultTimings(), Now: clock,
		NewID:   func(prefix string) string { serial++; return fmt.Sprintf("%s_%d", prefix, serial) },
		Project: rollout.Project{ID: "proj_a", Slug: "demo"},
		Serving: []rollout.ServingConfig{serving(stableConfig, "m/stable"), serving(candidateConfig, "m/candidate")},
	})
	require.NoError(t, e.Load(ctx))
	hand, err := e.Stepper(ctx)
	require.NoError(t, err)
	defer hand.Close()
	until := func(most time.Duration, holds func() bool) {
		for end := now.Add(most); !holds(); {
			due, moving := f.Step(now)
			next, pending, err := hand.Step(ctx)
			require.NoError(t, err)
			if moving && (!pending || due.Before(next)) {
				next = due
			}
			if holds() {
				return
			}
			require.True(t, (moving || pending) && next.Before(end), "nothing more happens before %s", end)
			now = next
		}
	}
	w := &world{Engine: e, t: t, disk: disk, fleet: f, alice: engine.Caller{Name: "alice"}}
	ep, err := e.CreateEndpoint(ctx, w.alice, "chat", "VISIBILITY_PRIVATE")
	require.NoError(t, err)
	s := setting{ep: ep, source: w.deploy(ep.ID, "stable", "m/stable", 2), target: w.deploy(ep.ID, "candidate", "m/candidate", 0)}
	until(time.Hour, func() bool { status, _ := f.Observe(ctx, s.source.ID); return status.Ready == 2 })
	w.split(ep.ID, rollout.Weight{Deployment: s.source.ID, Weight: 1})
	r := w.begin(s, s.gated(50, 100))
	until(time.Hour, func() bool { return w.now(r).State == rollout.Completed })
	rows, _, err := disk.Events(ctx, rollout.EventQuery{EndpointID: ep.ID, Limit: 1000})
	require.NoError(t, err)
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		out = append(out, fmt.Sprint(row.At.Format(time.TimeOnly), " ", row.Type, " ", row.Message))
	}
	return out
}

func TestAnEngineWorkedByHandPlaysTheSameTwice(t *testing.T) {
	first := stepped(t)
	require.Greater(t, len(first), 15)
	for range 5 {
		require.Equal(t, first, stepped(t))
	}
}
