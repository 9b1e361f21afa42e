package simulated_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/fleettest"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// machine is a fleet in virtual time with what the test knows of it.
type machine struct {
	*simulated.Fleet
	now      time.Time
	capacity int
	used     int // places held after the last action
	want     map[string]rollout.Workload
	diary    []string // what the listeners heard and saw
}

// newMachine makes one with no goroutine.
func newMachine(t require.TestingT) *machine {
	m := &machine{now: time.Unix(0, 0), capacity: 3, want: make(map[string]rollout.Workload)}
	f, err := simulated.New(simulated.Config{
		Pools: pools(m.capacity), Now: func() time.Time { return m.now }, DrainsFor: 7 * time.Second,
		Backoff: fleet.Backoff{First: 2 * time.Second, Max: 16 * time.Second},
	})
	require.NoError(t, err)
	m.Fleet = f
	f.Subscribe(func(d string) {
		st, err := f.Observe(context.Background(), d)
		require.NoError(t, err)
		m.diary = append(m.diary, fmt.Sprintf("%s %s %+v", m.now.Format(time.RFC3339), d, st))
		if r, ok := t.(interface{ Errorf(string, ...any) }); ok {
			fleettest.CheckCounts(r, st)
		}
	})
	return m
}

var deployments = []string{"dep_a", "dep_b", "dep_c"}

// act does one drawn thing to the fleet.
func (m *machine) act(t *rapid.T) {
	dep := rapid.SampledFrom(deployments).Draw(t, "deployment")
	switch rapid.SampledFrom([]string{"ensure", "ensure", "wish", "time", "time", "time", "kill", "kill", "capacity", "remove", "stick", "unstick"}).Draw(t, "action") {
	case "ensure":
		lo := rapid.IntRange(0, 3).Draw(t, "min")
		w := rollout.Workload{Deployment: dep, Config: serving(time.Duration(rapid.IntRange(0, 20).Draw(t, "cold")) * time.Second),
			Bounds: rollout.Bounds{Min: lo, Max: lo + rapid.IntRange(0, 2).Draw(t, "range")}}
		w.Config.ColdStart = 15 * time.Second
		require.NoError(t, m.Ensure(t.Context(), w))
		m.want[dep] = w
	case "wish":
		err := m.SetDesired(t.Context(), dep, rapid.IntRange(-1, 6).Draw(t, "n"))
		if _, known := m.want[dep]; known {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, fleet.ErrUnknownDeployment)
		}
	case "time":
		m.now = m.now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms")) * time.Millisecond)
		next, pending := m.Step(m.now)
		require.True(t, !pending || next.After(m.now), "what is due was left: %s at %s", next, m.now)
	case "kill":
		st, err := m.Observe(t.Context(), dep)
		require.NoError(t, err)
		if len(st.Replicas) == 0 {
			return
		}
		r := rapid.SampledFrom(st.Replicas).Draw(t, "replica")
		err = m.Kill(r.ID)
		require.Equal(t, r.State == rollout.ReplicaFailed || r.State == rollout.ReplicaPending, err != nil)
	case "capacity":
		m.capacity = rapid.IntRange(0, 6).Draw(t, "capacity")
		require.NoError(t, m.SetCapacity(fleettest.Hardware, m.capacity))
	case "remove":
		require.NoError(t, m.Remove(t.Context(), dep))
		delete(m.want, dep)
	case "stick":
		require.NoError(t, m.Stick(dep))
	case "unstick":
		require.NoError(t, m.Unstick(dep))
	}
}

// check is what holds after everything.
func (m *machine) check(t *rapid.T) {
	used, unplaced := 0, 0
	for _, dep := range deployments {
		st, err := m.Observe(t.Context(), dep)
		require.NoError(t, err)
		fleettest.CheckCounts(t, st)
		used += st.Scheduled
		unplaced += st.Unplaced
		w, known := m.want[dep]
		require.Equal(t, w.Bounds.Clamp(st.Desired), st.Desired, "known: %v", known)
	}
	require.LessOrEqual(t, used, max(m.capacity, m.used), "a place was given that is not there")
	list, err := m.Hardware(t.Context())
	require.NoError(t, err)
	require.Equal(t, max(0, m.capacity-used), list[0].Free)
	require.True(t, unplaced == 0 || list[0].Free == 0, "%d wait while %d places are free", unplaced, list[0].Free)
	m.used = used
}

func TestCountsAddUpAndNoPlaceIsGivenTwiceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){"act": m.act, "": m.check})
	})
}

func TestWhateverHappenedTheFleetComesToWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){"act": m.act})
		require.NoError(t, m.SetCapacity(fleettest.Hardware, -1))
		for dep, w := range m.want {
			w.Config = serving(time.Second)
			require.NoError(t, m.Unstick(dep))
			require.NoError(t, m.Ensure(t.Context(), w))
		}
		next, pending := m.Step(m.now)
		for steps := 0; pending; steps++ {
			require.Less(t, steps, 1000, "the fleet does not come to rest")
			m.now = next
			next, pending = m.Step(m.now)
		}
		for _, dep := range deployments {
			st, err := m.Observe(t.Context(), dep)
			require.NoError(t, err)
			require.Equal(t, st.Desired, st.Ready, "%s: %+v", dep, st)
			require.Len(t, st.Replicas, st.Ready)
		}
	})
}

func TestTheSameCallsGiveTheSameHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SliceOfN(rapid.IntRange(0, 4), 3, 20).Draw(t, "bounds")
		run := func() []string {
			m := newMachine(t)
			for i, n := range bounds {
				require.NoError(t, m.Ensure(t.Context(), rollout.Workload{
					Deployment: deployments[i%3], Config: serving(time.Duration(n) * time.Second), Bounds: rollout.Bounds{Min: n, Max: n},
				}))
				m.now = m.now.Add(3 * time.Second)
				m.Step(m.now)
			}
			return m.diary
		}
		require.Equal(t, run(), run())
	})
}
