package rollout

import (
	"fmt"
	"time"
)

// Basis is what stands when a rollout is made: the facts that turn a Spec into a
// Journey.
type Basis struct {
	SourceReplicas int    // serving now
	TargetReplicas int    // serving now; 0 for a stopped target
	SourceBounds   Bounds // autoscaling limits
	TargetBounds   Bounds
	Seed           int // the target's share of the pair's traffic, percent; above 0 for a frozen pair
}

// Frozen reports whether both sides serve already, as after a cancel.
func (b Basis) Frozen() bool { return b.Seed > 0 }

// Rung is one step of a ladder with its replica counts.
type Rung struct {
	Percent int `json:"percent"` // of the pair's traffic on the target
	Target  int `json:"target"`  // floor of the target
	Need    int `json:"need"`    // target replicas that must be ready before the shift
	Source  int `json:"source"`  // floor of the source after the drain
}

// Journey is a spec made concrete: what will be done, in effect.
type Journey struct {
	Rungs       []Rung        `json:"rungs"`
	AskedSoak   time.Duration `json:"askedSoak"`
	Soak        time.Duration `json:"soak"`
	Seed        int           `json:"seed"`        // percent before the first step
	Source      int           `json:"source"`      // replicas of the source at the start
	Target      int           `json:"target"`      // replicas of the target at the start
	FinalSource int           `json:"finalSource"` // left on the source
	FinalTarget int           `json:"finalTarget"` // size of the target that carries all
	LandingMin  int           `json:"landingMin"`  // floor of the target at the end
	LandingMax  int           `json:"landingMax"`  // ceiling that the target is lifted to, once
	SourceMax   int           `json:"sourceMax"`   // ceiling of the source at the start
}

// NewJourney resolves a valid spec on a basis. The problems it returns depend on
// what stands, unlike those of Validate.
func NewJourney(s Spec, b Basis, t Timings) (Journey, []Problem) {
	var ps problems
	j := Journey{
		Seed:        b.Seed,
		Source:      standing(b.SourceReplicas, b.SourceBounds),
		Target:      b.TargetReplicas,
		FinalSource: s.FinalSource,
		SourceMax:   b.SourceBounds.Max,
	}
	j.AskedSoak, j.Soak = t.Soak(s)
	j.FinalTarget = defaultFinal(s, b, j.Source)
	j.LandingMin = max(j.FinalTarget, b.TargetBounds.Min)
	j.LandingMax = max(j.LandingMin, b.SourceBounds.Max, b.TargetBounds.Max)
	if j.FinalSource > j.Source {
		ps.add("finalSourceReplicas", fmt.Sprintf("%d replicas cannot be left on a source that has %d", j.FinalSource, j.Source), "a rollout never scales its source up")
	}
	if s.Strategy == Rolling && j.FinalTarget > MaxBatches {
		ps.add("finalTargetReplicas", fmt.Sprintf("a rolling rollout takes one batch a target replica, and %d are above the limit of %d", j.FinalTarget, MaxBatches), "use a canary, whose steps move many at once")
		return j, ps
	}
	if s.Strategy == Rolling {
		j.Rungs = rollingRungs(j, b)
	} else {
		j.Rungs = stagedRungs(&ps, s, j, b)
	}
	if s.HoldsSource() {
		j.holdSource()
	}
	for _, r := range j.Rungs {
		j.LandingMax = max(j.LandingMax, r.Target) // a step may ask for more than the end has
	}
	return j, ps
}

// standing is the size that a side is meant to have now: what serves, within its
// bounds, since a replica above the maximum is already on its way out.
func standing(serving int, b Bounds) int {
	if b.Stopped() {
		return serving
	}
	return b.Clamp(serving)
}

func defaultFinal(s Spec, b Basis, source int) int {
	switch {
	case s.FinalTarget != nil:
		return *s.FinalTarget
	case b.Frozen():
		return max(1, source+b.TargetReplicas)
	default:
		return max(1, source)
	}
}

// stagedRungs makes the ladder of a canary or a blue-green. Of the default ladder
// only the rungs above the standing share are kept; a custom one must start above.
func stagedRungs(ps *problems, s Spec, j Journey, b Basis) []Rung {
	steps := s.Steps
	if s.Strategy == BlueGreen {
		steps = []StepSpec{{Percent: 100}}
	} else if len(steps) == 0 {
		for _, p := range DefaultLadder() {
			if p > b.Seed {
				steps = append(steps, StepSpec{Percent: p})
			}
		}
	} else if steps[0].Percent < b.Seed {
		ps.add("canary.steps[0].traffic", fmt.Sprintf("the first step asks for %d %%, but the target already carries %d %% of the pair", steps[0].Percent, b.Seed), fmt.Sprintf("start above %d", b.Seed))
	}
	rungs := make([]Rung, 0, len(steps))
	for _, st := range steps {
		need := TargetFor(j.FinalTarget, st.Percent)
		if st.Replicas != nil {
			need = *st.Replicas
		}
		if st.Percent == 100 {
			need = max(need, j.FinalTarget)
		}
		rung := Rung{Percent: st.Percent, Need: need, Target: j.targetFloor(need)}
		rung.Source = SourceAfter(j.Source, j.FinalSource, b.Seed, st.Percent)
		rung.Source = j.kept(rung)
		rungs = append(rungs, rung)
	}
	return rungs
}

// rollingRungs makes one rung a target replica. The share rounds down, so that a
// batch never carries more than its replicas do.
func rollingRungs(j Journey, b Basis) []Rung {
	n := j.FinalTarget
	rungs := make([]Rung, 0, n)
	for k := 1; k <= n; k++ {
		percent := int(int64(k) * 100 / int64(n))
		if percent <= b.Seed && k < n {
			continue
		}
		rungs = append(rungs, Rung{Percent: percent, Need: k, Target: j.targetFloor(k), Source: j.Source})
	}
	for i := range rungs {
		drained := int64(max(0, j.Source-j.FinalSource)) * int64(i+1) / int64(len(rungs))
		rungs[i].Source = j.Source - int(drained)
		rungs[i].Source = j.kept(rungs[i])
	}
	return rungs
}

// targetFloor is the floor of a step that needs so many target replicas. What the
// target of a frozen pair has already is kept, up to the size it shall have.
func (j Journey) targetFloor(need int) int { return max(need, min(j.Target, j.FinalTarget)) }

// kept is the floor of the source after a step: before the end so much of it stays
// that the total never falls below what it was, also where a step asks for fewer
// target replicas than its share needs, or where a frozen pair's target is larger
// than its share.
func (j Journey) kept(r Rung) int {
	if r.Percent >= 100 {
		return r.Source
	}
	return min(j.Source, max(r.Source, j.Source+j.Target-r.Target))
}

// Peak returns the most replicas that both sides hold at once, and the most that
// the target holds. Each step scales the target up before the source drains.
func (j Journey) Peak() (both, target int) {
	source := j.Source
	for _, r := range j.Rungs {
		both = max(both, source+r.Target)
		target = max(target, r.Target)
		source = r.Source
	}
	return max(both, j.Source+j.Target), max(target, j.Target)
}

// Extra returns the replicas beyond those that stand that the journey needs at its
// peak on the target's hardware. On shared hardware what the source gives back
// counts.
func (j Journey) Extra(h HardwareShare) int {
	both, target := j.Peak()
	if h == SharedHardware {
		return max(0, both-j.Source-j.Target)
	}
	return max(0, target-j.Target)
}

// HardwareShare says whether source and target draw on one pool.
type HardwareShare int

// The two cases of HardwareShare.
const (
	OwnHardware HardwareShare = iota
	SharedHardware
)

// Duration returns the least time that the journey takes when every wait is in
// full and nothing else takes any: per step propagation, soak and settling.
func (j Journey) Duration(t Timings, s Spec) time.Duration {
	per := t.Propagation + j.Soak
	if len(s.Rules) > 0 {
		per += t.GateSettle
	}
	return per * time.Duration(len(j.Rungs))
}
