package rollout_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// A route that the data plane could not serve as written is refused whole.
func TestRouteValidation(t *testing.T) {
	fresh := func() Route {
		return Route{
			EndpointID: "ep_1", Name: "team/chat",
			Members: []Member{{Deployment: "dep_a", Weight: 1, Replicas: []Replica{{State: ReplicaReady}, {State: ReplicaDraining}}}, {Deployment: "dep_b"}},
			Pair:    &Pair{Source: "dep_a", Target: "dep_b", Percent: 10, Share: 1},
		}
	}
	assert.NoError(t, fresh().Validate())
	assert.Equal(t, 1, fresh().Members[0].Ready())
	for name, spoil := range map[string]func(*Route){
		"no endpoint":         func(r *Route) { r.EndpointID = "" },
		"no name":             func(r *Route) { r.Name = "" },
		"a nameless member":   func(r *Route) { r.Members[0].Deployment = "" },
		"a member twice":      func(r *Route) { r.Members[1].Deployment = "dep_a" },
		"negative weight":     func(r *Route) { r.Members[0].Weight = -1 },
		"weight NaN":          func(r *Route) { r.Members[0].Weight = math.NaN() },
		"infinite weight":     func(r *Route) { r.Members[0].Weight = math.Inf(1) },
		"pair of one":         func(r *Route) { r.Pair.Target = "dep_a" },
		"pair of a stranger":  func(r *Route) { r.Pair.Target = "dep_c" },
		"source a stranger":   func(r *Route) { r.Pair.Source = "dep_c" },
		"percent above 100":   func(r *Route) { r.Pair.Percent = 101 },
		"negative percent":    func(r *Route) { r.Pair.Percent = -1 },
		"share above 1":       func(r *Route) { r.Pair.Share = 1.5 },
		"share NaN":           func(r *Route) { r.Pair.Share = math.NaN() },
		"share below nothing": func(r *Route) { r.Pair.Share = -0.1 },
	} {
		r := fresh()
		spoil(&r)
		assert.Error(t, r.Validate(), name)
	}
}

func TestThresholdsAtTheirEdge(t *testing.T) {
	at := func(v float64) Reading { return Reading{Value: v, Samples: 1, Complete: true} }
	for o, want := range map[Operator][3]Verdict{ // below, at and above the value
		LT:  {VerdictPass, VerdictBreached, VerdictBreached},
		LTE: {VerdictPass, VerdictPass, VerdictBreached},
		GT:  {VerdictBreached, VerdictBreached, VerdictPass},
		GTE: {VerdictBreached, VerdictPass, VerdictPass},
	} {
		rule := Rule{Metric: InflightRequests, Threshold: &Threshold{o, 8}}
		for i, v := range []float64{7.9, 8, 8.1} {
			row := Judge(rule, Reading{}, at(v))
			assert.Equal(t, want[i], row.Verdict, "%v %s 8", v, o)
			assert.Nil(t, row.SourceValue, "the source is not looked at")
		}
	}
}

func TestSmallNouns(t *testing.T) {
	e := Endpoint{Split: []Weight{{Deployment: "dep_a", Weight: 0.5}}}
	assert.Equal(t, 0.5, e.WeightOf("dep_a"))
	assert.Zero(t, e.WeightOf("dep_b"))

	operate := Key{Scopes: []Scope{ScopeOperate}}
	assert.True(t, operate.Allows(ScopeRead))
	assert.True(t, operate.Allows(ScopeOperate))
	assert.False(t, operate.Allows(ScopeAdmin))
	assert.False(t, Key{}.Allows(ScopeRead))

	assert.True(t, ServingConfig{Models: []string{"m"}}.Serves("m"))
	assert.True(t, ServingConfig{Models: []string{"*"}}.Serves("m"))
	assert.False(t, ServingConfig{Models: []string{"n"}}.Serves("m"))

	assert.True(t, Change{}.Empty())
	assert.False(t, Change{Delete: []Ref{{}}}.Empty())
	assert.NotEqual(t, ETag(1), ETag(2))
	assert.Equal(t, 3, Bounds{Min: 1, Max: 3}.Clamp(9))
	assert.Zero(t, Bounds{}.Clamp(9))
}

// A journey's least time is all its waits; the demo's ladder would have taken this
// long beyond its cold starts and drains.
func TestDurationOfTheDemo(t *testing.T) {
	s := good()
	s.Steps = steps(10, 50, 100)
	j, _ := NewJourney(s, serving(1), DefaultTimings())
	assert.Equal(t, 3*423*time.Second, j.Duration(DefaultTimings(), s))
	s.Strategy, s.Rules = BlueGreen, nil
	j, _ = NewJourney(s, serving(1), DefaultTimings())
	assert.Equal(t, time.Minute, j.Duration(DefaultTimings(), s))
}

// A side that is above its maximum is on its way down to it.
func TestSourceAboveItsMaximum(t *testing.T) {
	j, _ := NewJourney(Spec{Strategy: BlueGreen}, Basis{SourceReplicas: 5, SourceBounds: Bounds{Min: 1, Max: 3}}, DefaultTimings())
	assert.Equal(t, 3, j.Source)
	assert.Equal(t, 3, j.FinalTarget)
	j, _ = NewJourney(Spec{Strategy: BlueGreen}, Basis{SourceReplicas: 1, SourceBounds: Bounds{Min: 2, Max: 3}}, DefaultTimings())
	assert.Equal(t, 2, j.Source)
}

// Only a working rollout is parked by an outage; a pause needs no world, and a
// cancel goes on trying.
func TestOutageParksOnlyWork(t *testing.T) {
	base := worldAt(t, PhaseSoaking, " after 10s", "pause").record()
	for _, s := range States() {
		r := base
		r.State, r.Condition = s, nil
		d := ParkOn(r, DependencyOutage, "the fleet does not answer", epoch.Add(time.Hour))
		working := s == Running || s == Stabilizing
		assert.Equal(t, working, d.Changed, s)
		assert.Equal(t, working, len(d.Events) == 1, s)
		if working {
			assert.Equal(t, SystemPaused, d.Rollout.State)
			assert.Equal(t, d.Rollout.RetryAt, d.Due)
		} else {
			assert.Equal(t, s, d.Rollout.State)
		}
	}
}

// A park once said "after 15.000857907s".
func TestADeadlineIsToldInWholeSeconds(t *testing.T) {
	spec := Spec{Source: "a", Target: "b", Strategy: BlueGreen}
	timings := DefaultTimings()
	basis := Basis{SourceReplicas: 1, SourceBounds: Bounds{Min: 1, Max: 1}}
	j, _ := NewJourney(spec, basis, timings)
	began := time.Date(2026, 9, 16, 20, 0, 0, 0, time.UTC)
	r, _ := New("rol_1", "p", "ep_1", spec, j, timings, began)
	r, _, err := r.Start(began)
	if err != nil {
		t.Fatal(err)
	}
	r.Phase, r.PhaseSince, r.Lifted = PhaseScaling, began, true
	now := began.Add(timings.ReadyDeadline + 857907)
	d := Decide(r, Observed{Split: Split{Held: true}, Source: Side{Bounds: Bounds{Min: 1, Max: 1}, Desired: 1, Scheduled: 1, Ready: 1}, Target: Side{Bounds: Bounds{Min: 1, Max: 1}, Desired: 1, Scheduled: 1}}, now)
	if c := d.Rollout.Condition; c == nil || !strings.Contains(c.Message, "after "+timings.ReadyDeadline.String()+" (") {
		t.Fatalf("%+v", d)
	}
}
