package planning

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// Ahead is what an engine says, when a plan is made, of a rollout that the plan would
// make. It moves by itself, so no digest of a spec or of a plan covers it.
type Ahead struct {
	Digest   string          // of the spec as it was asked for
	Spec     api.RolloutSpec // with the source that was inferred, where one could be
	Endpoint api.Endpoint
	Holder   *api.Rollout // that holds the endpoint; nil for none
	Drift    *ShownDrift  // under the holder where it is of this pair; nil otherwise
	Timings  rollout.Timings
	Refused  string // why the engine would not take it as things stand; there is no preview then
	Preview  api.Preview
	Pair     [2]Side // source and target; empty where it is refused
}

// Side is one deployment of a pair with the hardware of a replica; nil when the engine
// does not list it.
type Side struct {
	Deployment api.Deployment
	Hardware   *api.InstanceType
}

// On fills the pair's hardware from a list of it.
func (a *Ahead) On(listed []api.InstanceType) {
	for i := range a.Pair {
		for _, h := range listed {
			if a.Pair[i].Deployment.Hardware == h.ID {
				a.Pair[i].Hardware = &h
			}
		}
	}
}

// Standstill says why an engine would make the rollout and not start it: its first step is
// where the target is already, such as after a cancel at that step. Empty when it is not.
func (a Ahead) Standstill() string {
	if a.Refused != "" || a.Preview.EstimatedSeedPercent == nil || a.Spec.Canary == nil {
		return ""
	}
	steps, seed := a.Journey().Steps, *a.Preview.EstimatedSeedPercent
	if len(steps) > 0 && seed > 0 && steps[0].TrafficPercent <= seed {
		return fmt.Sprintf("the first step asks for %d %%, which the target carries already: start above %d, or go back first with a reverse", steps[0].TrafficPercent, seed)
	}
	return ""
}

// Journey is the way on what stands; of a spec that is refused it is that of the
// declaration alone.
func (a Ahead) Journey() Journey {
	if a.Refused != "" {
		return NewJourney(a.spec(), Known{}, a.Timings)
	}
	return OnPreview(a.Spec, a.Preview)
}

func (a Ahead) spec() rollout.Spec {
	spec, _ := wire.SpecFromAPI(a.Spec)
	return spec
}

// coldStart is the budget of one start of the target's config; 0 when it is not told.
func (a Ahead) coldStart() time.Duration {
	if a.Preview.Sluice == nil {
		return 0
	}
	return time.Duration(a.Preview.Sluice.ColdStart)
}

// listed reports whether the hardware of both sides is known.
func (a Ahead) listed() bool { return a.Pair[0].Hardware != nil && a.Pair[1].Hardware != nil }

func (a Ahead) loads(j Journey) []Load {
	var machines [2]Machine
	for i, s := range a.Pair {
		if s.Hardware != nil {
			machines[i] = Machine{GPUs: s.Hardware.GPUCount, CentsPerHour: s.Hardware.PriceCentsPerHour}
		}
	}
	return j.Loads([2]int{a.Preview.SourceReplicas, a.Preview.TargetReplicas}, machines, a.coldStart())
}

// Loads tells each step's load; nil when the hardware or the counts are not known.
func (a Ahead) Loads() []Load {
	if a.Refused != "" || !a.listed() {
		return nil
	}
	return a.loads(a.Journey())
}

// Cents is what both sides at once cost beyond what stands, at most; nil when a price is
// not known.
func (a Ahead) Cents() *float64 {
	loads := a.Loads()
	if loads == nil || a.Pair[0].Hardware.PriceCentsPerHour <= 0 || a.Pair[1].Hardware.PriceCentsPerHour <= 0 {
		return nil
	}
	return ptr(OverlapOf(loads).Cents)
}

// FreeGPUs are those of the target's hardware that nobody has; nil when not known.
func (a Ahead) FreeGPUs() *int {
	h := a.Pair[1].Hardware
	if h == nil {
		return nil
	}
	replicas, _ := headroomOf(*h)
	if replicas == nil {
		return nil
	}
	return ptr(int(*replicas) * h.GPUCount)
}

// headroomOf sums the replicas that fit in the regions whose headroom is known.
func headroomOf(h api.InstanceType) (replicas *int64, exact bool) {
	sum, known, exact := int64(0), false, true
	for _, r := range h.Regions {
		if r.Headroom == nil || r.Headroom.Value == nil {
			exact = false
			continue
		}
		sum, known = sum+int64(*r.Headroom.Value), true
		exact = exact && r.Headroom.Relation == "RELATION_EQ"
	}
	if !known {
		return nil, false
	}
	return &sum, exact
}
