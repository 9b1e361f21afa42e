package planning

import (
	"fmt"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Journey is the whole way of one rollout, as data. What depends on facts that are
// not known stays nil: nothing in it is ever guessed, so that a plan made before
// an apply is still true at it.
type Journey struct {
	Strategy rollout.Strategy `json:"strategy"`
	Steps    []Step           `json:"steps"`
	Gates    []Gate           `json:"gates"`
	Breaker  []BreakerRule    `json:"breaker,omitempty"` // of the circuit breaker
	Totals   Totals           `json:"totals"`
	Findings []Finding        `json:"findings"`
	Digest   string           `json:"digest"`
}

// Step is one step of a journey. Waits are per step, in effect.
type Step struct {
	Number         int           `json:"number"` // 1-based
	TrafficPercent int           `json:"trafficPercent"`
	DeltaPercent   int           `json:"deltaPercent"`             // of the pair's traffic that moves in this step
	TargetReplicas *int          `json:"targetReplicas,omitempty"` // ready before the shift
	TargetExact    *float64      `json:"targetExact,omitempty"`    // the share before it is rounded up
	SourceReplicas *int          `json:"sourceReplicas,omitempty"` // after the drain
	ScaleUp        *int          `json:"scaleUp,omitempty"`        // target replicas that this step adds to what stands
	AskedWait      time.Duration `json:"askedWait"`
	Wait           time.Duration `json:"wait"`
	WaitReason     string        `json:"waitReason"`
	StartsAt       time.Duration `json:"startsAt"` // least time from the start to this step
	Least          time.Duration `json:"least"`    // least time that the step takes
	Gated          bool          `json:"gated"`    // whether a metric rule can judge it

	surge *int // most target replicas that it can add: to what stands, else to a stopped target
}

// Gate is one metric rule with what it needs to have a verdict.
type Gate struct {
	Rule              rollout.Rule  `json:"rule"`
	Text              string        `json:"text"` // one line for a person
	Window            time.Duration `json:"window"`
	SamplesNeeded     int           `json:"samplesNeeded"` // of each side that it reads, in the window
	RequestsPerSecond float64       `json:"requestsPerSecond"`
	BusiestStep       int           `json:"busiestStep"` // the step that needs that rate, 1-based
}

// Totals are the flat facts of a journey, for people and policies.
type Totals struct {
	StepCount           *int          `json:"stepCount,omitempty"` // nil for a rolling swap of unknown size
	FirstStepPercent    int           `json:"firstStepPercent"`
	MaxStepDelta        int           `json:"maxStepDelta"`
	UngatedPercent      int           `json:"ungatedPercent"` // blast radius: traffic on the target before any gate has judged
	GateCount           int           `json:"gateCount"`
	Soak                time.Duration `json:"soak"`
	LeastDuration       time.Duration `json:"leastDuration"` // of what is known, without cold starts
	WaitLimit           time.Duration `json:"waitLimit"`     // how long a door waits at most: as asked, or DefaultWait
	FinalSourceReplicas int           `json:"finalSourceReplicas"`
	FinalTargetReplicas *int          `json:"finalTargetReplicas,omitempty"`
	PeakReplicas        *int          `json:"peakReplicas,omitempty"`   // of both sides at once
	LargestScaleUp      *int          `json:"largestScaleUp,omitempty"` // at most: without a basis the target counts as stopped
	HoldsSource         bool          `json:"holdsSource,omitempty"`    // the source keeps its full size until the last gate
	BreakerSignedBy     string        `json:"breakerSignedBy,omitempty"`
}

// Known is what a plan may rely on beyond the declaration.
type Known struct {
	Basis   *rollout.Basis // what stands; nil when nothing live may be used
	Timeout time.Duration  // that the door will wait; 0 for no limit worth checking
	Burst   int            // replicas that one step may add without a remark; default 4
}

// NewJourney makes the journey of a valid spec.
func NewJourney(s rollout.Spec, k Known, t rollout.Timings) Journey {
	if k.Burst <= 0 {
		k.Burst = 4
	}
	j := Journey{Strategy: s.Strategy, Digest: Digest(s)}
	asked, soak := t.Soak(s)
	if k.Basis != nil {
		core, _ := rollout.NewJourney(s, *k.Basis, t)
		j.Steps = liveSteps(s, core)
		both, _ := core.Peak()
		j.Totals.PeakReplicas, j.Totals.FinalTargetReplicas = ptr(both), ptr(core.FinalTarget)
	} else {
		j.Steps = declaredSteps(s)
		j.Totals.FinalTargetReplicas = s.FinalTarget
	}
	reason := waitReason(s, asked, soak, t)
	j.addWaits(s, t, asked, soak, reason, k.Basis)
	j.Gates = gates(s, j.Steps, t)
	j.addWayBack(s, t)
	j.addTotals(s, soak)
	if j.Totals.WaitLimit = k.Timeout; k.Timeout <= 0 {
		j.Totals.WaitLimit = DefaultWait(j.Totals.LeastDuration)
	}
	j.Findings = findings(s, k, t, j)
	return j
}

// declaredSteps is the ladder with the counts that follow from the declaration
// alone. A rolling swap of unknown size is one line to 100.
func declaredSteps(s rollout.Spec) []Step {
	var out []Step
	switch s.Strategy {
	case rollout.BlueGreen:
		out = []Step{{TrafficPercent: 100}}
	case rollout.Rolling:
		return rollingSteps(s.FinalTarget)
	case rollout.Canary:
		for _, st := range s.Steps {
			out = append(out, Step{TrafficPercent: st.Percent, TargetReplicas: st.Replicas})
		}
		if len(out) == 0 {
			for _, p := range rollout.DefaultLadder() {
				out = append(out, Step{TrafficPercent: p})
			}
		}
	}
	for i := range out {
		fillFromFinal(&out[i], s.FinalTarget)
	}
	return out
}

func fillFromFinal(st *Step, final *int) {
	if final == nil {
		return
	}
	st.TargetExact = ptr(float64(*final) * float64(st.TrafficPercent) / 100)
	switch {
	case st.TargetReplicas == nil:
		st.TargetReplicas = ptr(rollout.TargetFor(*final, st.TrafficPercent))
	case st.TrafficPercent == 100:
		st.TargetReplicas = ptr(max(*st.TargetReplicas, *final))
	}
}

func rollingSteps(final *int) []Step {
	if final == nil {
		return []Step{{TrafficPercent: 100}}
	}
	// The batches depend on the target's final count alone, so the core makes them
	// on any source.
	core, _ := rollout.NewJourney(rollout.Spec{Strategy: rollout.Rolling, FinalTarget: final}, rollout.Basis{SourceReplicas: *final}, rollout.DefaultTimings())
	out := make([]Step, 0, len(core.Rungs))
	for _, rung := range core.Rungs {
		out = append(out, Step{TrafficPercent: rung.Percent, TargetReplicas: ptr(rung.Need)})
	}
	return out
}

// liveSteps is the ladder as the engine would resolve it on what stands.
func liveSteps(s rollout.Spec, core rollout.Journey) []Step {
	out := make([]Step, 0, len(core.Rungs))
	for _, rung := range core.Rungs {
		st := Step{TrafficPercent: rung.Percent, TargetReplicas: ptr(rung.Need), SourceReplicas: ptr(rung.Source)}
		if s.Strategy != rollout.Rolling {
			st.TargetExact = ptr(float64(core.FinalTarget) * float64(rung.Percent) / 100)
		}
		out = append(out, st)
	}
	return out
}

// addWaits numbers the steps and fills what follows from their order. basis is nil
// when nothing live may be used.
func (j *Journey) addWaits(s rollout.Spec, t rollout.Timings, asked, soak time.Duration, reason string, basis *rollout.Basis) {
	least := t.Propagation + soak
	if len(s.Rules) > 0 {
		least += t.GateSettle
	}
	percent, replicas, at := 0, 0, time.Duration(0)
	if basis != nil {
		percent, replicas = basis.Seed, basis.TargetReplicas
	}
	for i := range j.Steps {
		st := &j.Steps[i]
		st.Number, st.DeltaPercent = i+1, st.TrafficPercent-percent
		st.AskedWait, st.Wait, st.WaitReason = asked, soak, reason
		st.StartsAt, st.Least, st.Gated = at, least, judged(s.Rules, st.TrafficPercent)
		if st.TargetReplicas != nil {
			st.surge = ptr(max(0, *st.TargetReplicas-replicas))
			if basis != nil {
				st.ScaleUp = st.surge
			}
			replicas = max(replicas, *st.TargetReplicas)
		}
		percent, at = st.TrafficPercent, at+least
	}
}

func waitReason(s rollout.Spec, asked, soak time.Duration, t rollout.Timings) string {
	switch {
	case grownForBreaker(s, t):
		return fmt.Sprintf("grown from %s: a circuit breaker's window, %s until its last request can be read, and %s between two looks", Span(asked), Span(t.IngestionLag), Span(t.BreakerEvery()))
	case s.Strategy != rollout.Canary:
		return "the engine's stabilization wait: this strategy has no metric gate"
	case soak > asked:
		return fmt.Sprintf("grown from %s (%s)", Span(asked), SoakGrown) // the finding has the arithmetic
	case s.StepInterval == 0:
		return "the engine's default"
	}
	return "as asked"
}

func (j *Journey) addTotals(s rollout.Spec, soak time.Duration) {
	tot := &j.Totals
	tot.FinalSourceReplicas, tot.GateCount, tot.Soak = s.FinalSource, len(s.Rules), soak
	if s.Strategy != rollout.Rolling || j.Totals.FinalTargetReplicas != nil {
		tot.StepCount = ptr(len(j.Steps))
	}
	tot.UngatedPercent = 100
	for i, st := range j.Steps {
		if i == 0 {
			tot.FirstStepPercent = st.TrafficPercent
			if st.Gated {
				tot.UngatedPercent = st.TrafficPercent
			}
		}
		tot.MaxStepDelta = max(tot.MaxStepDelta, st.DeltaPercent)
		tot.LeastDuration += st.Least
		if st.surge != nil && (tot.LargestScaleUp == nil || *st.surge > *tot.LargestScaleUp) {
			tot.LargestScaleUp = st.surge
		}
	}
}

func ptr[T any](v T) *T { return &v }
