package planning

import (
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// Check tells what can never be right about a spec in its wire form, whatever engine
// it is sent to, in the sentences that every door uses. Each names the field that it
// is about, in the words of the wire.
func Check(s api.RolloutSpec) []rollout.Problem {
	offline := rollout.DefaultTimings()
	offline.MinimumWindow = 0 // the engine's own affair
	_, problems := wire.Checked(s, offline)
	return problems
}

// OnPreview makes the journey of a spec on what an engine's preview says stands, by
// that engine's waits; an engine that tells none runs by the published ones.
func OnPreview(s api.RolloutSpec, p api.Preview) Journey {
	spec, _ := wire.SpecFromAPI(s)
	timings := rollout.DefaultTimings()
	if p.Sluice != nil {
		timings = wire.TimingsFromAPI(p.Sluice.Timings)
	}
	basis := &rollout.Basis{
		SourceReplicas: p.SourceReplicas, TargetReplicas: p.TargetReplicas,
		TargetBounds: rollout.Bounds{Min: p.TargetMinReplicas, Max: p.TargetMaxReplicas},
	}
	if p.EstimatedSeedPercent != nil {
		basis.Seed = *p.EstimatedSeedPercent
	}
	j := NewJourney(spec, Known{Basis: basis}, timings)
	if x := p.Sluice; x != nil {
		j.told(*x)
	}
	return j
}

// told puts in what the engine itself made of the spec: it knows more of what stands
// than a preview says.
func (j *Journey) told(x api.PreviewExtra) {
	if len(x.Ladder) == len(j.Steps) {
		for i, rung := range x.Ladder {
			if j.Steps[i].TrafficPercent == rung.TrafficPercent {
				j.Steps[i].SourceReplicas = ptr(rung.SourceReplicas)
			}
		}
	}
	if x.PeakReplicas > 0 {
		j.Totals.PeakReplicas = ptr(x.PeakReplicas)
	}
	if soak := time.Duration(x.Soak); soak > 0 {
		j.Totals.Soak = soak
	}
}

// LeftOut are the steps of the default ladder that a spec without steps of its own
// will not have, since the target carries so much already.
func LeftOut(s api.RolloutSpec, p api.Preview) []int {
	if s.Canary == nil || len(s.Canary.Steps) > 0 || p.EstimatedSeedPercent == nil {
		return nil
	}
	var out []int
	for _, percent := range rollout.DefaultLadder() {
		if percent <= *p.EstimatedSeedPercent {
			out = append(out, percent)
		}
	}
	return out
}
