package simulated_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/fleettest"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet/simulated"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serving is a virtual config with a cold start.
func serving(cold time.Duration) rollout.ServingConfig {
	return rollout.ServingConfig{
		ID: "cr_test", Models: []string{"*"}, Hardware: fleettest.Hardware,
		Simulated: rollout.SimulatedServing{ColdStart: cold},
	}
}

// pools is an inventory of n places.
func pools(n int) []fleet.Pool {
	return []fleet.Pool{{Hardware: rollout.Hardware{ID: fleettest.Hardware, GPUCount: 1, Capacity: n}}}
}

func TestTheSimulatedFleetConforms(t *testing.T) {
	hangs := serving(time.Second)
	hangs.Simulated.Stuck = true
	fleettest.Suite{
		In: synctest.Test,
		New: func(t *testing.T, o fleettest.Options) fleettest.Rig {
			f, err := simulated.New(simulated.Config{Pools: pools(o.Capacity), Quiesce: o.Quiesce, Backoff: o.Backoff})
			require.NoError(t, err)
			f.Start()
			return fleettest.Rig{Fleet: f, Kill: func(r rollout.Replica) error { return f.Kill(r.ID) }}
		},
		Quick: serving(5 * time.Second),
		Hangs: hangs,
	}.Run(t)
}
