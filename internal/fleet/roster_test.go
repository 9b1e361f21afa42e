package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// gpus is an inventory of one host: single GPUs and pairs of the same four.
func gpus() []fleet.Pool {
	return []fleet.Pool{
		{Hardware: rollout.Hardware{ID: "1x", GPUCount: 1, Capacity: -1}, GPUs: []int{0, 1, 2, 3}},
		{Hardware: rollout.Hardware{ID: "2x", GPUCount: 2, Capacity: -1}, GPUs: []int{3, 2, 1, 0}},
		{Hardware: rollout.Hardware{ID: "cpu", Capacity: -1}},
	}
}

// roster makes the bookkeeping with counted names.
func roster(t *testing.T, pools []fleet.Pool) *fleet.Roster {
	t.Helper()
	n := 0
	r, err := fleet.NewRoster(pools, func() string { n++; return fmt.Sprintf("r%d", n) })
	require.NoError(t, err)
	return r
}

// want asks for n replicas on the hardware.
func want(deployment, hardware string, lo, hi int) rollout.Workload {
	return rollout.Workload{Deployment: deployment, Config: rollout.ServingConfig{Hardware: hardware}, Bounds: rollout.Bounds{Min: lo, Max: hi}}
}

// said writes orders as words.
func said(orders []fleet.Order) []string {
	list := []string{}
	for _, o := range orders {
		list = append(list, fmt.Sprintf("%s %s %v", o.Verb, o.Replica.ID, o.Replica.GPUs))
	}
	return list
}

func TestTwoHardwareTypesCompeteForTheSameGPUs(t *testing.T) {
	r := roster(t, gpus())
	require.NoError(t, r.Ensure(want("a", "1x", 1, 1)))
	require.NoError(t, r.Ensure(want("b", "2x", 2, 2)))
	require.NoError(t, r.Ensure(want("c", "cpu", 1, 1)))
	require.Equal(t, []string{"START r1 [0]", "START r2 [1 2]", "START r4 []"}, said(r.Plan(noon)))
	require.Empty(t, r.Plan(noon), "a plan is ordered once")
	require.Equal(t, fleet.MessageNoCapacity, r.Status("b").Message)
	list := r.Hardware()
	require.Equal(t, []int{4, 1, 2, 0, -1, -1},
		[]int{list[0].Capacity, list[0].Free, list[1].Capacity, list[1].Free, list[2].Capacity, list[2].Free})

	r.Remove("a")
	require.Equal(t, []string{"STOP r1 [0]"}, said(r.Plan(noon)))
	require.Empty(t, said(r.Plan(noon)), "the GPU is free only when the replica is gone")
	r.Gone("r1")
	require.Equal(t, []string{"START r3 [0 3]"}, said(r.Plan(noon)))
	require.Equal(t, "No replicas", r.Status("a").Message)
}

func TestOnlyAReplicaThatServedIsDrained(t *testing.T) {
	r := roster(t, gpus())
	require.NoError(t, r.Ensure(want("a", "1x", 3, 3)))
	r.Plan(noon)
	r.Ready("r1", noon)
	r.Ready("r2", noon)
	r.Unready("r2", "busy", noon) // may still hold requests
	require.NoError(t, r.Ensure(want("a", "1x", 0, 0)))
	require.Equal(t, []string{"STOP r3 [2]", "DRAIN r2 [1]", "DRAIN r1 [0]"}, said(r.Plan(noon)))
	r.Ready("r1", noon)
	require.Equal(t, 3, r.Status("a").Draining, "a draining replica stays so, whatever its probe says")
	require.False(t, r.Failed("r1", "exit", noon), "one that dies while it drains is gone")
	require.Equal(t, "Stopping replicas", r.Status("a").Message)
}

func TestTheYoungestReadyIsTheOneThatBecameReadyLast(t *testing.T) {
	r := roster(t, gpus())
	require.NoError(t, r.Ensure(want("a", "1x", 1, 3)))
	require.NoError(t, r.SetDesired("a", 3))
	r.Plan(noon)
	r.Ready("r1", noon.Add(time.Minute)) // restarted, so its cache is cold
	r.Ready("r2", noon)
	r.Ready("r3", noon)
	require.NoError(t, r.SetDesired("a", 1))
	require.Equal(t, []string{"DRAIN r1 [0]", "DRAIN r3 [2]"}, said(r.Plan(noon)))
}

func TestAdoptedReplicasKeepTheirCountUntilTheyAreClaimed(t *testing.T) {
	r := roster(t, gpus())
	adopt := func(id string, state rollout.ReplicaState, gpu int) {
		r.Adopt(rollout.Replica{ID: id, Deployment: "a", State: state, GPUs: []int{gpu}}, want("a", "1x", 0, 0))
	}
	adopt("x", rollout.ReplicaStarting, 1)
	adopt("y", rollout.ReplicaStarting, 3)
	adopt("z", rollout.ReplicaDraining, 0)
	require.Empty(t, r.Plan(noon))
	require.Equal(t, []string{"a"}, r.Unclaimed())
	require.ErrorIs(t, r.SetDesired("a", 1), fleet.ErrUnknownDeployment)
	require.Equal(t, 2, r.Status("a").Desired)
	require.NoError(t, r.Ensure(want("a", "1x", 1, 3)))
	require.Empty(t, r.Unclaimed())
	require.Equal(t, 2, r.Status("a").Desired, "what the autoscaler had added stays")
	require.NoError(t, r.SetDesired("a", 3))
	require.Equal(t, []string{"START r1 [2]"}, said(r.Plan(noon)), "the adopted GPUs are held")
}

func TestAnUnclaimedReplicaThatDiesIsNotStartedAgain(t *testing.T) {
	r := roster(t, gpus())
	r.Adopt(rollout.Replica{ID: "x", Deployment: "a", State: rollout.ReplicaStarting, GPUs: []int{1}}, want("a", "1x", 0, 0))
	require.False(t, r.Failed("x", "exit", noon), "nobody has said with which command")
	require.Empty(t, r.Deployments())
	require.Equal(t, 4, r.Hardware()[0].Free)
	require.NoError(t, r.Ensure(want("a", "1x", 1, 1)))
	require.Equal(t, []string{"START r1 [0]"}, said(r.Plan(noon)))
}

func TestAnInventoryThatContradictsItselfIsRefused(t *testing.T) {
	one := rollout.Hardware{ID: "1x", GPUCount: 1}
	for name, pools := range map[string][]fleet.Pool{
		"no id":         {{}},
		"named twice":   {{Hardware: one}, {Hardware: one}},
		"no GPU count":  {{Hardware: rollout.Hardware{ID: "x"}, GPUs: []int{1}}},
		"the same GPU":  {{Hardware: one, GPUs: []int{1, 1}}},
		"negative GPUs": {{Hardware: one, GPUs: []int{-1}}},
	} {
		_, err := fleet.NewRoster(pools, nil)
		require.Error(t, err, name)
	}
}

func TestBackOffDoublesUpToItsLimit(t *testing.T) {
	b := fleet.Backoff{}.WithDefaults()
	var got []time.Duration
	for n := 1; n <= 8; n++ {
		got = append(got, b.Delay(n)/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, got)
	require.Equal(t, time.Minute, b.Delay(1<<30))
}

func TestAZeroServingConfigGetsTheDocumentedDefaults(t *testing.T) {
	c := fleet.WithDefaults(rollout.ServingConfig{})
	require.Equal(t, rollout.Probe{Path: "/health", Status: 200, Interval: time.Second, Timeout: 2 * time.Second, Failures: 3}, c.Probe)
	require.Equal(t, []time.Duration{10 * time.Minute, 600 * time.Second, 30 * time.Second},
		[]time.Duration{c.ColdStart, c.DrainTimeout, c.StopTimeout})
	c.Probe.Status = 204
	require.Equal(t, c, fleet.WithDefaults(c))
}

func TestADrainIsNotHeldUpByAHookThatHeedsNoContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hook := fleet.Quiesce(func(context.Context, rollout.Replica) error { <-release; return nil })
		begin := time.Now()
		require.ErrorIs(t, hook.Await(t.Context(), rollout.Replica{}, time.Minute), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begin))
		close(release)
		require.NoError(t, hook.Await(t.Context(), rollout.Replica{}, time.Minute))
		require.NoError(t, fleet.Quiesce(nil).Await(t.Context(), rollout.Replica{}, 0))
		refused := errors.New("no such replica")
		hook = func(context.Context, rollout.Replica) error { return refused }
		require.ErrorIs(t, hook.Await(t.Context(), rollout.Replica{}, time.Minute), refused)
	})
}

func TestListenersAreCalledInTheOrderInWhichTheyCame(t *testing.T) {
	var l fleet.Listeners
	var heard []string
	add := func(name string) func() {
		return l.Subscribe(func(d string) { heard = append(heard, name+d) })
	}
	add("a")
	leave := add("b")
	add("c")
	l.Notify([]string{"1", "2"})
	leave()
	leave()
	l.Notify([]string{"3"})
	require.Equal(t, []string{"a1", "b1", "c1", "a2", "b2", "c2", "a3", "c3"}, heard)
}
