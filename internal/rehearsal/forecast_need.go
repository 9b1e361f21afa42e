package rehearsal

import "github.com/sluice-dev/terraform-provider-sluice/internal/planning"

// Needs lists what the gates of a played plan need, by step and rule.
func (p Plan) Needs(f Forecast) []planning.GateNeed {
	percents := make([]int, 0, len(f.record.Journey.Rungs))
	for _, rung := range f.record.Journey.Rungs {
		percents = append(percents, rung.Percent)
	}
	return planning.Needs(p.Spec, percents, p.Timings, p.Rate)
}
