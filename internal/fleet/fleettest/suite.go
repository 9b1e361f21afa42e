package fleettest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Hardware is the one hardware type of every scenario.
const Hardware = "1xtest"

// Suite is a driver under test.
type Suite struct {
	// In runs a scenario in the driver's kind of time: synctest.Test, or the
	// scenario itself for real time.
	In func(t *testing.T, scenario func(t *testing.T))
	// New makes a running fleet. The suite closes it.
	New func(t *testing.T, o Options) Rig
	// Quick becomes ready soon, Hangs stays STARTING for longer than a test lasts.
	Quick, Hangs rollout.ServingConfig
}

// Options is what a scenario needs of its fleet.
type Options struct {
	Capacity int // of Hardware
	Quiesce  fleet.Quiesce
	Backoff  fleet.Backoff
}

// Rig is a fleet with the hand that breaks it.
type Rig struct {
	Fleet fleet.Fleet
	Kill  func(r rollout.Replica) error // as a crash does
}

// Run puts the driver through every scenario.
func (s Suite) Run(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			s.In(t, func(t *testing.T) { sc.run(t, s) })
		})
	}
}

// scenarios is the conformance suite, by the sentence that each one proves.
var scenarios = []struct {
	name string
	run  func(t *testing.T, s Suite)
}{
	{"the desired count is followed up and down", followsDesired},
	{"ensuring twice is ensuring once", ensureTwice},
	{"failures of ready replicas are counted, and nothing else", countsFailures},
	{"bounds 0/0 stop every replica and a floor starts them again", stopsAtZero},
	{"without capacity a replica waits and is placed when a place is free", waitsForCapacity},
	{"victims go unplaced, starting, failed, then the youngest ready", victimOrder},
	{"a ready victim is drained before it stops and keeps its place until it is gone", drainsFirst},
	{"listeners hear of a drain before its hook runs", tellsFirst},
	{"a drain is cut at its timeout", drainTimeout},
	{"scaling up during a drain starts another replica", doesNotRevive},
	{"a killed replica comes back", comesBack},
	{"the wish is moved into the bounds", clamps},
	{"a changed config counts for new replicas only", keepsServing},
	{"removing ends every replica and forgets the deployment", removes},
	{"a workload that cannot be is refused", refuses},
	{"a listener that left hears nothing", unsubscribes},
	{"a closed fleet refuses", closes},
}

// world is one scenario's fleet, watched.
type world struct {
	*testing.T
	Rig
	suite   Suite
	changed chan struct{} // holds one token when something changed
}

// begin makes the world and checks the counts at every change in it.
func (s Suite) begin(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{T: t, Rig: s.New(t, o), suite: s, changed: make(chan struct{}, 1)}
	cancel := w.Fleet.Subscribe(func(deployment string) {
		if st, err := w.Fleet.Observe(t.Context(), deployment); err == nil {
			CheckCounts(t, st)
		}
		select {
		case w.changed <- struct{}{}:
		default:
		}
	})
	t.Cleanup(func() {
		cancel()
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer stop()
		require.NoError(t, w.Fleet.Close(ctx))
	})
	return w
}

// reporter is the part of a test that CheckCounts needs; rapid has it too.
type reporter interface{ Errorf(string, ...any) }

// CheckCounts reports a status whose numbers contradict its replicas or each
// other.
func CheckCounts(t reporter, st rollout.FleetStatus) {
	count := make(map[rollout.ReplicaState]int)
	for _, r := range st.Replicas {
		count[r.State]++
	}
	pending := count[rollout.ReplicaPending]
	live := len(st.Replicas) - count[rollout.ReplicaDraining]
	switch {
	case st.Ready != count[rollout.ReplicaReady], st.Draining != count[rollout.ReplicaDraining],
		st.Unplaced != pending, st.Scheduled != len(st.Replicas)-pending, live != st.Desired:
		t.Errorf("counts do not add up: %+v", st)
	case st.Ready > st.Desired, st.Ready+st.Draining > st.Scheduled:
		t.Errorf("counts out of order: %+v", st)
	}
}

// workload asks for the deployment with a config and bounds.
func workload(deployment string, c rollout.ServingConfig, lo, hi int) rollout.Workload {
	return rollout.Workload{Deployment: deployment, Model: "test/model", Config: c, Bounds: rollout.Bounds{Min: lo, Max: hi}}
}

// ensure asks for the deployment with the quick config.
func (w *world) ensure(deployment string, lo, hi int) {
	w.Helper()
	require.NoError(w, w.Fleet.Ensure(w.Context(), workload(deployment, w.suite.Quick, lo, hi)))
}

// wish is the autoscaler's call.
func (w *world) wish(deployment string, n int) {
	w.Helper()
	require.NoError(w, w.Fleet.SetDesired(w.Context(), deployment, n))
}

// see returns the deployment's status.
func (w *world) see(deployment string) rollout.FleetStatus {
	w.Helper()
	st, err := w.Fleet.Observe(w.Context(), deployment)
	require.NoError(w, err)
	return st
}

// until waits for a status, woken by the fleet's own notices.
func (w *world) until(deployment, what string, holds func(rollout.FleetStatus) bool) rollout.FleetStatus {
	w.Helper()
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	for {
		st := w.see(deployment)
		if holds(st) {
			return st
		}
		select {
		case <-w.changed:
		case <-limit.C:
			w.Fatalf("%s never came to: %s; it is %+v", deployment, what, st)
		}
	}
}

// untilReady waits until exactly n replicas are there and all are ready.
func (w *world) untilReady(deployment string, n int) rollout.FleetStatus {
	w.Helper()
	return w.until(deployment, "all ready", func(st rollout.FleetStatus) bool {
		return st.Ready == n && len(st.Replicas) == n
	})
}

// free is what is free of the hardware.
func (w *world) free() int {
	w.Helper()
	list, err := w.Fleet.Hardware(w.Context())
	require.NoError(w, err)
	for _, h := range list {
		if h.ID == Hardware {
			return h.Free
		}
	}
	w.Fatalf("no hardware %s in %v", Hardware, list)
	return 0
}

// ids are the replicas' identities, oldest first.
func ids(st rollout.FleetStatus) []string {
	list := make([]string, 0, len(st.Replicas))
	for _, r := range st.Replicas {
		list = append(list, r.ID)
	}
	return list
}

// state finds one replica's state; empty for one that is gone.
func state(st rollout.FleetStatus, id string) rollout.ReplicaState {
	for _, r := range st.Replicas {
		if r.ID == id {
			return r.State
		}
	}
	return ""
}
