package rehearsal

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Fault is something that shall go wrong in a forecast, read by ParseFault.
type Fault struct {
	Kind   string
	Step   int // 1-based; 0 for from the start
	N      int
	Factor float64       // of slow-target, and the rate of target-errors
	Wait   time.Duration // of cold-start-slow
	Source bool          // replica-death=source
}

// FaultKind documents one kind of fault.
type FaultKind struct {
	Form string // as it is written
	Does string
}

// faultKind is how one kind of fault is read and set up.
type faultKind struct {
	name string
	FaultKind
	value func(f *Fault, value string) error // nil for none
	step  stepUse
	stage func(f Fault, s *stage)
}

// faultKinds are all there are.
var faultKinds = []faultKind{
	{"replica-death", FaultKind{"replica-death[=target|=source][@stepN]", "one ready replica dies in the middle of the step's soak (step 1 if none is named)"}, deathValue, stepOrFirst, stageDeath},
	{"cold-start-stuck", FaultKind{"cold-start-stuck", "no replica of the target becomes ready"}, nil, noStep, stageStuck},
	{"cold-start-slow", FaultKind{"cold-start-slow=20m", "each replica of the target takes so long to start"}, slowValue, noStep, stageSlow},
	{"capacity", FaultKind{"capacity=N[@stepN]", "so many further replicas of the target fit, from before the step's check on"}, countValue, stepOrFirst, stageCapacity},
	{"metrics-gap", FaultKind{"metrics-gap[@stepN]", "the meter is blind for up to 30 s in the middle of the step's window (step 1 if none is named)"}, nil, stepOrFirst, stageGap},
	{"idle", FaultKind{"idle[@stepN]", "no requests, from the start or from the step's shift on"}, nil, stepOrStart, stageIdle},
	{"slow-target", FaultKind{"slow-target=+50%", "every latency of the target is so much higher"}, percentValue, noStep, stageSlowTarget},
	{"target-errors", FaultKind{"target-errors=5%", "so many of the target's answers are 5xx"}, shareValue, noStep, stageErrors},
	{"router-refuses", FaultKind{"router-refuses[@stepN]", "the routers refuse every split from the step's scaling on (step 1 if none is named)"}, nil, stepOrFirst, stageRefuse},
	{"crash", FaultKind{"crash[@stepN]", "the engine dies while it shifts the step's traffic, and starts anew (step 1 if none is named)"}, nil, stepOrFirst, stageCrash},
}

// stepUse says what a step means to a kind of fault.
type stepUse int

const (
	noStep      stepUse = iota // it has none
	stepOrFirst                // without one it is step 1
	stepOrStart                // without one it is from +0:00 on
)

// FaultKinds lists what ParseFault reads.
func FaultKinds() []FaultKind {
	out := make([]FaultKind, 0, len(faultKinds))
	for _, k := range faultKinds {
		out = append(out, k.FaultKind)
	}
	return out
}

var faultForm = regexp.MustCompile(`^([a-z-]+)(?:=([^@]+))?(?:@step([0-9]{1,4}))?$`)

// ParseFault reads a fault such as "replica-death@step2" or "slow-target=+50%".
func ParseFault(text string) (Fault, error) {
	m := faultForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Fault{}, fmt.Errorf("fault %q: want name, name=value, name@stepN or name=value@stepN, for example replica-death@step2", text)
	}
	f := Fault{Kind: m[1], Factor: 1}
	i := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == f.Kind })
	if i < 0 {
		names := make([]string, 0, len(faultKinds))
		for _, k := range faultKinds {
			names = append(names, k.name)
		}
		return Fault{}, fmt.Errorf("fault %q is not known: there are %s", f.Kind, strings.Join(names, ", "))
	}
	k := faultKinds[i]
	if m[3] != "" {
		f.Step, _ = strconv.Atoi(m[3]) // digits, as the form has it
		if k.step == noStep || f.Step == 0 {
			return Fault{}, fmt.Errorf("fault %q: want %s, with steps from 1", text, k.Form)
		}
	}
	if k.step == stepOrFirst && f.Step == 0 {
		f.Step = 1
	}
	if k.value == nil && m[2] != "" {
		return Fault{}, fmt.Errorf("fault %q takes no value: want %s", text, k.Form)
	}
	if k.value != nil {
		if err := k.value(&f, m[2]); err != nil {
			return Fault{}, fmt.Errorf("fault %q: want %s", text, k.Form)
		}
	}
	return f, nil
}

var errValue = fmt.Errorf("not a value of this fault")

func deathValue(f *Fault, v string) error {
	if v != "" && v != "target" && v != "source" {
		return errValue
	}
	f.Source = v == "source"
	return nil
}

func slowValue(f *Fault, v string) (err error) {
	if f.Wait, err = time.ParseDuration(v); err == nil && (f.Wait <= 0 || f.Wait > Horizon) {
		err = errValue
	}
	return err
}

func countValue(f *Fault, v string) (err error) {
	if f.N, err = strconv.Atoi(v); err == nil && f.N < 0 {
		err = errValue
	}
	return err
}

func percentValue(f *Fault, v string) error {
	number, ok := strings.CutSuffix(strings.TrimPrefix(v, "+"), "%")
	p, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(p) || p <= -100 || p > 1e6 {
		return errValue
	}
	f.Factor = 1 + p/100
	return nil
}

func shareValue(f *Fault, v string) error {
	number, ok := strings.CutSuffix(v, "%")
	p, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(p) || p < 0 || p > 100 {
		return errValue
	}
	f.Factor = p / 100
	return nil
}

// stage sets a fault up in a world whose rollout is about to be created.
func (f Fault) stage(s *stage) {
	for _, k := range faultKinds {
		if k.name == f.Kind {
			k.stage(f, s)
		}
	}
}

// in has something happen in a phase of a step.
func (s *stage) in(p rollout.Phase, step int, after time.Duration, text string, do func(*World)) {
	s.w.triggers = append(s.w.triggers, command{text: text, phase: p, step: step, after: after, do: do})
}

func (s *stage) soak() time.Duration {
	_, soak := s.plan.Timings.Soak(s.plan.Spec)
	return soak
}

func stageDeath(f Fault, s *stage) {
	s.in(rollout.PhaseSoaking, f.Step, s.soak()/2, "a replica dies", func(w *World) {
		if f.Source {
			w.kill(w.source, 1)
			return
		}
		w.kill(w.target, 1)
	})
}

func stageStuck(_ Fault, s *stage) {
	s.begins = append(s.begins, func(w *World) { w.must(w.fleet.Stick(w.target.id)) })
}

// stageSlow makes starts slower than the budget fail at it, as they would.
func stageSlow(f Fault, s *stage) {
	s.begins = append(s.begins, func(w *World) { w.target.cold = f.Wait })
}

func stageCapacity(f Fault, s *stage) {
	do := func(w *World) { w.resize(f.N) }
	if f.Step == 1 {
		s.begins = append(s.begins, do)
		return
	}
	s.in(rollout.PhaseSoaking, f.Step-1, 0, "capacity changes", do)
}

// gap is how long a metrics gap lasts at most.
const gap = 30 * time.Second

func stageGap(f Fault, s *stage) {
	t := s.plan.Timings
	window := t.DefaultWindow
	for _, r := range s.plan.Spec.Rules {
		window = min(window, t.WindowOf(r))
	}
	length := min(gap, window/3)
	middle := max(0, s.soak()-t.IngestionLag-window/2-length/2)
	blind := func(v bool) func(*World) {
		return func(w *World) { w.meter.change(func(c *conditions) { c.blind = v }) }
	}
	s.in(rollout.PhaseSoaking, f.Step, middle, "the meter is blind", blind(true))
	s.in(rollout.PhaseSoaking, f.Step, middle+length, "the meter sees again", blind(false))
}

func stageIdle(f Fault, s *stage) {
	do := func(w *World) { w.meter.change(func(c *conditions) { c.rate = 0 }) }
	if f.Step == 0 {
		s.begins = append(s.begins, do)
		return
	}
	s.in(rollout.PhasePropagating, f.Step, 0, "the traffic ends", do)
}

func stageSlowTarget(f Fault, s *stage) {
	m := s.crowd.models[s.w.target.id]
	m.Factor *= f.Factor
	s.crowd.models[s.w.target.id] = m
}

func stageErrors(f Fault, s *stage) {
	m := s.crowd.models[s.w.target.id]
	m.ErrorRate = f.Factor
	s.crowd.models[s.w.target.id] = m
}

func stageRefuse(f Fault, s *stage) {
	s.in(rollout.PhaseScaling, f.Step, 0, "the routers refuse", func(w *World) {
		w.routers.failing = "connection refused"
		w.watch.faulty()
	})
}

// stageCrash has the engine die at its next outward call once it is to shift: the split
// is served, and nobody has heard of it.
func stageCrash(f Fault, s *stage) {
	s.in(rollout.PhaseShifting, f.Step, 0, "the engine dies", func(w *World) { w.power.after(1, crashAfter, nil) })
}
