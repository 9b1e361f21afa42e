package planning

import (
	"time"
)

// Machine is what one replica of a side takes.
type Machine struct {
	GPUs         int
	CentsPerHour int // 0 when not known
}

// Load is what both sides hold during one step at most: the target's replicas are
// ready and the source is not drained yet. Extra is what that is beyond what stood
// before the rollout, 0 where it is less.
type Load struct {
	Replicas   int
	GPUs       int
	ExtraGPUs  int
	ExtraCents float64       // an hour
	Time       time.Duration // least time of the step, and one cold start where it starts replicas
}

// Loads tells each step's load on what stands, replicas of the source first. It is nil
// when the counts of a step are not known. The load is taken for the whole step, since
// when the drain inside it ends is not known: an upper estimate.
func (j Journey) Loads(standing [2]int, machines [2]Machine, cold time.Duration) []Load {
	price := func(n [2]int) float64 {
		return float64(n[0]*machines[0].CentsPerHour + n[1]*machines[1].CentsPerHour)
	}
	gpus := func(n [2]int) int { return n[0]*machines[0].GPUs + n[1]*machines[1].GPUs }
	out := make([]Load, 0, len(j.Steps))
	now := standing
	for _, st := range j.Steps {
		if st.TargetReplicas == nil || st.SourceReplicas == nil {
			return nil
		}
		now[1] = max(now[1], *st.TargetReplicas)
		l := Load{Replicas: now[0] + now[1], GPUs: gpus(now), ExtraGPUs: max(0, gpus(now)-gpus(standing)), ExtraCents: max(0, price(now)-price(standing)), Time: st.Least}
		if st.ScaleUp != nil && *st.ScaleUp > 0 {
			l.Time += cold
		}
		out = append(out, l)
		now[0] = min(now[0], *st.SourceReplicas)
	}
	return out
}

// Overlap sums what loads take beyond what stood.
type Overlap struct {
	PeakReplicas int
	PeakGPUs     int
	ExtraGPUs    int // at the peak of it
	GPUHours     float64
	Cents        float64
	Time         time.Duration // of all steps
}

// OverlapOf sums loads.
func OverlapOf(loads []Load) Overlap {
	var o Overlap
	for _, l := range loads {
		o.PeakReplicas, o.PeakGPUs, o.ExtraGPUs = max(o.PeakReplicas, l.Replicas), max(o.PeakGPUs, l.GPUs), max(o.ExtraGPUs, l.ExtraGPUs)
		o.GPUHours += float64(l.ExtraGPUs) * l.Time.Hours()
		o.Cents += l.ExtraCents * l.Time.Hours()
		o.Time += l.Time
	}
	return o
}
