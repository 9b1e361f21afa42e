package simulated_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/fleettest"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// see is the status of the one deployment.
func (m *machine) see(t *testing.T) rollout.FleetStatus {
	t.Helper()
	st, err := m.Observe(t.Context(), "dep")
	require.NoError(t, err)
	return st
}

// pass moves time on.
func (m *machine) pass(d time.Duration) {
	m.now = m.now.Add(d)
	m.Step(m.now)
}

// begin ensures one deployment with a cold start of 10 s and a budget of 15 s.
func begin(t *testing.T, lo, hi int) *machine {
	t.Helper()
	m := newMachine(t)
	w := rollout.Workload{Deployment: "dep", Config: serving(10 * time.Second), Bounds: rollout.Bounds{Min: lo, Max: hi}}
	w.Config.ColdStart = 15 * time.Second
	require.NoError(t, m.Ensure(t.Context(), w))
	return m
}

func TestAColdStartTakesExactlyItsTime(t *testing.T) {
	m := begin(t, 1, 1)
	next, pending := m.Step(m.now)
	require.True(t, pending)
	require.Equal(t, m.now.Add(10*time.Second), next)
	m.pass(10*time.Second - time.Nanosecond)
	require.Equal(t, rollout.ReplicaStarting, m.see(t).Replicas[0].State)
	m.pass(time.Nanosecond)
	require.Equal(t, rollout.ReplicaReady, m.see(t).Replicas[0].State)
	require.Equal(t, next, m.see(t).Replicas[0].Since)
	_, pending = m.Step(m.now)
	require.False(t, pending)
}

func TestALateStepGivesEachThingItsOwnInstant(t *testing.T) {
	m := begin(t, 1, 1)
	at := m.now.Add(10 * time.Second)
	m.pass(time.Hour)
	require.Equal(t, at, m.see(t).Replicas[0].Since)
}

func TestAStuckStartFailsAtItsBudgetAndBacksOffLongerEachTime(t *testing.T) {
	m := begin(t, 1, 1)
	require.NoError(t, m.Stick("dep"))
	for _, wait := range []time.Duration{2, 4, 8, 16, 16} {
		m.pass(15 * time.Second)
		r := m.see(t).Replicas[0]
		require.Equal(t, rollout.ReplicaFailed, r.State)
		require.Equal(t, "Not ready within its cold start of 15s", r.Message)
		m.pass(wait*time.Second - time.Nanosecond)
		require.Equal(t, rollout.ReplicaFailed, m.see(t).Replicas[0].State)
		m.pass(time.Nanosecond)
		require.Equal(t, rollout.ReplicaStarting, m.see(t).Replicas[0].State)
	}
	require.NoError(t, m.Unstick("dep"))
	m.pass(10 * time.Second)
	require.Equal(t, 1, m.see(t).Ready)
	m.pass(time.Minute) // ready long enough to be trusted again
	require.NoError(t, m.Kill(m.see(t).Replicas[0].ID))
	m.pass(2 * time.Second)
	require.Equal(t, rollout.ReplicaStarting, m.see(t).Replicas[0].State)
	require.Equal(t, 6, m.see(t).Replicas[0].Restarts)
}

func TestAReplicaThatDiesOnLostHardwareWaitsForAPlace(t *testing.T) {
	m := begin(t, 2, 2)
	m.pass(10 * time.Second)
	require.NoError(t, m.SetCapacity(fleettest.Hardware, 1))
	require.Equal(t, 2, m.see(t).Ready, "shrinking evicts nobody")
	lost := m.see(t).Replicas[0].ID
	require.NoError(t, m.Kill(lost))
	m.pass(2 * time.Second)
	st := m.see(t)
	require.Equal(t, []int{1, 1, 1}, []int{st.Ready, st.Scheduled, st.Unplaced})
	require.Equal(t, fleet.MessageNoCapacity, st.Message)
	require.NoError(t, m.SetCapacity(fleettest.Hardware, 2))
	m.pass(10 * time.Second)
	require.Equal(t, 2, m.see(t).Ready)
	require.Error(t, m.SetCapacity("unheard-of", 1))
}

func TestADrainTakesItsVirtualTime(t *testing.T) {
	m := begin(t, 1, 2)
	require.NoError(t, m.SetDesired(t.Context(), "dep", 2))
	m.pass(10 * time.Second)
	require.NoError(t, m.SetDesired(t.Context(), "dep", 1))
	m.pass(7*time.Second - time.Nanosecond)
	require.Equal(t, 1, m.see(t).Draining)
	m.pass(time.Nanosecond)
	require.Len(t, m.see(t).Replicas, 1)
}

func TestAKilledDrainingReplicaIsGone(t *testing.T) {
	m := begin(t, 1, 1)
	m.pass(10 * time.Second)
	id := m.see(t).Replicas[0].ID
	require.NoError(t, m.Remove(t.Context(), "dep"))
	require.NoError(t, m.Kill(id))
	require.Empty(t, m.see(t).Replicas)
	require.ErrorIs(t, m.Kill(id), fleet.ErrUnknownReplica)
}

func TestListenersKnowOfADrainBeforeItsHookRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard, order := make(chan struct{}), make(chan string, 2)
		f, err := simulated.New(simulated.Config{Pools: pools(1), Quiesce: func(context.Context, rollout.Replica) error {
			order <- "hook"
			return errors.New("the gateway is gone")
		}})
		require.NoError(t, err)
		f.Start()
		require.NoError(t, f.Ensure(t.Context(), rollout.Workload{Deployment: "dep", Config: serving(0), Bounds: rollout.Bounds{Min: 1, Max: 1}}))
		synctest.Wait()
		f.Subscribe(func(string) {
			if st, err := f.Observe(context.Background(), "dep"); err == nil && st.Draining == 1 {
				order <- "listener"
				close(heard)
			}
		})
		require.NoError(t, f.Remove(t.Context(), "dep"))
		<-heard
		synctest.Wait()
		require.Equal(t, []string{"listener", "hook"}, []string{<-order, <-order})
		st, err := f.Observe(t.Context(), "dep")
		require.NoError(t, err)
		require.Empty(t, st.Replicas, "a hook that fails holds nothing up")
		require.NoError(t, f.Close(t.Context()))
	})
}

func TestABackendServesBehindEachVirtualReplica(t *testing.T) {
	failures := 1
	f, err := simulated.New(simulated.Config{
		Pools: pools(1), Backoff: fleet.Backoff{First: time.Millisecond},
		Backend: func(_ rollout.Replica, model string) (string, func(), error) {
			if failures--; failures == 0 {
				return "", nil, errors.New("no luck")
			}
			return modelserver.Start(modelserver.Config{Model: model})
		},
	})
	require.NoError(t, err)
	ready := make(chan rollout.Replica, 10)
	f.Subscribe(func(string) {
		st, err := f.Observe(context.Background(), "dep")
		if err == nil && st.Ready == 1 {
			ready <- st.Replicas[0]
		}
	})
	f.Start()
	require.NoError(t, f.Ensure(t.Context(), rollout.Workload{
		Deployment: "dep", Model: "m", Config: serving(0), Bounds: rollout.Bounds{Min: 1, Max: 1}}))
	r := <-ready
	require.Equal(t, 1, r.Restarts, "the first start failed")
	get := func(addr string) (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/models", nil)
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	body, err := get(r.Address)
	require.NoError(t, err)
	require.Contains(t, body, `"id":"m"`)

	require.NoError(t, f.Kill(r.ID))
	second := <-ready
	require.NotEqual(t, r.Address, second.Address)
	_, err = get(second.Address)
	require.NoError(t, err)
	require.NoError(t, f.Close(t.Context()))
	_, err = get(second.Address)
	require.Error(t, err)
}
