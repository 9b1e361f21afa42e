package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// crowded has rollouts that wait for hours, looked at five times a second each as far
// as the engine allows.
const crowded = `
fleet: {driver: simulated, servers: config}
hardware:
  - {id: 1xsim, gpu_type: none}
configs:
  - {id: cr_a, models: [m/a], hardware: 1xsim}
timings: {propagation: 100ms, stabilization: 100ms}
`

// crowd is a server with many rollouts that soak.
type crowd struct {
	*Server
	dir      string
	rollouts []rollout.Rollout
}

func (c *crowd) serve(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(crowded), 0o600))
	f, err := ReadFile(path)
	require.NoError(t, err)
	c.Server, err = Start(t.Context(), Options{Dir: c.dir, Listen: "127.0.0.1:0", GatewayListen: "127.0.0.1:0", File: f})
	require.NoError(t, err)
}

func (c *crowd) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, c.Stop(ctx))
}

// gather makes n rollouts and waits until all soak.
func (c *crowd) gather(t *testing.T, n int) {
	t.Helper()
	c.rollouts = make([]rollout.Rollout, n)
	failed := make([]error, n)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				c.rollouts[i], failed[i] = c.begin(t, fmt.Sprintf("chat-%d", i))
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		require.NoError(t, err)
	}
	for _, r := range c.rollouts {
		c.await(t, r, func(r rollout.Rollout) bool { return r.Phase == rollout.PhaseSoaking && r.Steps[r.Step].Health != nil }) // and counts its failures anew
	}
}

func (c *crowd) begin(t *testing.T, name string) (rollout.Rollout, error) {
	ctx, by := t.Context(), engine.Caller{Name: "test"}
	ep, err := c.engine.CreateEndpoint(ctx, by, name, "")
	if err != nil {
		return rollout.Rollout{}, err
	}
	var side [2]rollout.Deployment
	for i, d := range []engine.DeploymentSpec{{Name: "old", Bounds: rollout.Bounds{Min: 1, Max: 1}}, {Name: "new"}} {
		d.Model, d.Config = "m/a", "cr_a"
		if side[i], err = c.engine.CreateDeployment(ctx, by, ep.ID, d, engine.DryRun(0)); err != nil {
			return rollout.Rollout{}, err
		}
	}
	split := []rollout.Weight{{Deployment: side[0].ID, Weight: 1}}
	if _, err := c.engine.UpdateEndpoint(ctx, by, ep.ID, "", engine.EndpointChange{Split: &split}); err != nil {
		return rollout.Rollout{}, err
	}
	for ready := false; !ready; {
		v, err := c.engine.View(ctx, side[0])
		if err != nil {
			return rollout.Rollout{}, err
		}
		ready = v.State == engine.Ready
		runtime.Gosched()
	}
	r, err := c.engine.CreateRollout(ctx, by, ep.ID, rollout.Spec{
		Source: side[0].ID, Target: side[1].ID, Strategy: rollout.Canary,
		Steps: []rollout.StepSpec{{Percent: 10}, {Percent: 100}}, StepInterval: 6 * time.Hour,
	})
	if err != nil {
		return r, err
	}
	return c.engine.StartRollout(ctx, by, ep.ID, r.ID)
}

// await waits until a rollout is as it should be.
func (c *crowd) await(t *testing.T, r rollout.Rollout, is func(rollout.Rollout) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		now, err := c.engine.Rollout(t.Context(), r.EndpointID, r.ID)
		return err == nil && is(now)
	}, 2*time.Minute, time.Millisecond, r.ID)
}

// control pauses and resumes some of them and returns the longest time from a pause to
// its stored effect but for the worst one.
func (c *crowd) control(t *testing.T) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range 20 {
		r := c.rollouts[i*len(c.rollouts)/20]
		began := time.Now()
		_, err := c.engine.ControlRollout(t.Context(), engine.Caller{Name: "test"}, r.EndpointID, r.ID, "", c.engine.Pause("test"))
		require.NoError(t, err)
		c.await(t, r, func(r rollout.Rollout) bool { return r.State == rollout.Paused })
		took = append(took, time.Since(began))
		_, err = c.engine.ControlRollout(t.Context(), engine.Caller{Name: "test"}, r.EndpointID, r.ID, "", c.engine.Resume())
		require.NoError(t, err)
		c.await(t, r, func(r rollout.Rollout) bool { return r.Phase == rollout.PhaseSoaking && r.Steps[r.Step].Health != nil }) // and counts its failures anew
	}
	slices.Sort(took)
	return took[len(took)-2]
}

// versions are those of all rollouts.
func (c *crowd) versions(t *testing.T) map[string]int64 {
	t.Helper()
	open, err := c.store.OpenRollouts(t.Context())
	require.NoError(t, err)
	out := map[string]int64{}
	for _, r := range open {
		out[r.ID] = r.Version
	}
	return out
}

// turns are the looks at rollouts a second over a while.
func (c *crowd) turns(while time.Duration) float64 {
	before, began := c.engine.Workload().Turns, time.Now()
	<-time.After(while)
	return float64(c.engine.Workload().Turns-before) / time.Since(began).Seconds()
}

// crowdSeen is what a crowd of one size showed.
type crowdSeen struct {
	goroutines int
	turns      float64 // a second
	control    time.Duration
	back       time.Duration // from the next start until all were taken up
}

func seeCrowd(t *testing.T, n int) (seen crowdSeen) {
	t.Helper()
	c := &crowd{dir: t.TempDir()}
	c.serve(t)
	c.gather(t, n)
	seen.turns = c.turns(2 * time.Second)
	seen.goroutines = runtime.NumGoroutine()
	seen.control = c.control(t)
	was := c.versions(t)
	c.end(t)
	began := time.Now()
	c.serve(t)
	require.Eventually(t, func() bool {
		w := c.engine.Workload()
		return w.Turns >= uint64(n) && w.Unseen == 0
	}, 2*time.Minute, time.Millisecond)
	seen.back = time.Since(began)
	require.Equal(t, was, c.versions(t), "a start that finds everything as it was writes no rollout")
	c.end(t)
	return seen
}

// TestAThousandWaitingRolloutsCostLittleMoreThanTwoHundred compares two crowds. Under the
// race detector both are a quarter of it.
func TestAThousandWaitingRolloutsCostLittleMoreThanTwoHundred(t *testing.T) {
	few, many := seeCrowd(t, crowds), seeCrowd(t, 5*crowds)
	t.Logf("measured: %d rollouts %+v, %d %+v", crowds, few, 5*crowds, many)
	require.InDelta(t, few.goroutines, many.goroutines, 40, "no goroutine of its own for a rollout that waits")
	require.LessOrEqual(t, many.turns, 500.0, "looks for which nothing is due are bounded")
	require.Positive(t, many.turns, "and do not cease: a lost notice must be noticed")
	require.LessOrEqual(t, many.control, 10*few.control+time.Second)
	require.LessOrEqual(t, many.back, 20*few.back+5*time.Second, "a start does not cost the square")
}
