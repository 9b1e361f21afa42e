package rollout_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// ladderA1 is the ladder of case A1.
func ladderA1() []int { return []int{1, 5, 10, 33, 50, 99, 100} }

func steps(percents ...int) []StepSpec {
	var out []StepSpec
	for _, p := range percents {
		out = append(out, StepSpec{Percent: p})
	}
	return out
}

func serving(n int) Basis {
	return Basis{SourceReplicas: n, SourceBounds: Bounds{Min: n, Max: n}}
}

// A1 (argo-rollouts#1068): 10 replicas at 30 % were made 3 new and 7 old at once.
// For 1 to 20 replicas: the target rounds up, the drain rounds down, and at no
// instant is the sum of what is planned below what stood.
func TestA1CapacityTable(t *testing.T) {
	for n := 1; n <= 20; n++ {
		j, problems := NewJourney(Spec{Strategy: Canary, Steps: steps(ladderA1()...)}, serving(n), DefaultTimings())
		require.Empty(t, problems)
		require.Len(t, j.Rungs, len(ladderA1()))
		source := n
		for i, p := range ladderA1() {
			r := j.Rungs[i]
			name := fmt.Sprintf("%d replicas at %d %%", n, p)
			assert.Equal(t, (n*p+99)/100, r.Target, name)
			assert.Equal(t, r.Target, r.Need, name)
			assert.Equal(t, n-n*p/100, r.Source, name)
			assert.GreaterOrEqual(t, source+r.Target, n, "%s: before the drain", name)
			assert.GreaterOrEqual(t, r.Source+r.Target, n, "%s: after the drain", name)
			assert.LessOrEqual(t, r.Source+r.Target, n+1, "%s: more than one over", name)
			source = r.Source
		}
		assert.Zero(t, source)
	}
}

// Rolling: as many batches as the final count, one replica up, then one down.
func TestRollingTable(t *testing.T) {
	for n := 1; n <= 20; n++ {
		j, problems := NewJourney(Spec{Strategy: Rolling}, serving(n), DefaultTimings())
		require.Empty(t, problems)
		require.Len(t, j.Rungs, n)
		source := n
		for i, r := range j.Rungs {
			assert.Equal(t, i+1, r.Target)
			assert.Equal(t, 100*(i+1)/n, r.Percent)
			assert.Equal(t, n+1, source+r.Target, "%d replicas, batch %d: one over", n, i+1)
			assert.Equal(t, n, r.Source+r.Target)
			source = r.Source
		}
		both, target := j.Peak()
		assert.Equal(t, []int{n + 1, n}, []int{both, target})
	}
}

// A11 (argo-rollouts#3284): the surge of a step is known before it begins, and what
// must be placed is the peak of the journey, not what stands at its end.
func TestA11PeakOfTheJourney(t *testing.T) {
	for _, c := range []struct {
		name                string
		spec                Spec
		basis               Basis
		both, target        int
		extraOwn, extraBoth int
	}{
		{"canary of 10", Spec{Strategy: Canary, Steps: steps(50, 100)}, serving(10), 15, 10, 10, 5},
		{"blue-green of 10", Spec{Strategy: BlueGreen}, serving(10), 20, 10, 10, 10},
		{"rolling of 10", Spec{Strategy: Rolling}, serving(10), 11, 10, 10, 1},
		{"default ladder of 4", Spec{Strategy: Canary}, serving(4), 6, 4, 4, 2},
		{"frozen pair 3 and 2 at 40 %", Spec{Strategy: Canary}, Basis{SourceReplicas: 3, TargetReplicas: 2, SourceBounds: Bounds{Min: 3, Max: 3}, TargetBounds: Bounds{Min: 2, Max: 5}, Seed: 40}, 8, 5, 3, 3},
	} {
		j, problems := NewJourney(c.spec, c.basis, DefaultTimings())
		require.Empty(t, problems, c.name)
		both, target := j.Peak()
		assert.Equal(t, []int{c.both, c.target}, []int{both, target}, c.name)
		assert.Equal(t, c.extraOwn, j.Extra(OwnHardware), c.name)
		assert.Equal(t, c.extraBoth, j.Extra(SharedHardware), c.name)
	}
}

// A3 (argo-rollouts PR#3474): weights times replicas overflowed and asked for a
// negative count. Up to a million replicas: exact, monotone, in range.
func TestA3CapacityNeverOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1_000_000).Draw(t, "replicas")
		final := rapid.IntRange(0, 1_000_000).Draw(t, "final")
		seed := rapid.IntRange(0, 99).Draw(t, "seed")
		p := rapid.IntRange(0, 100).Draw(t, "percent")

		target := TargetFor(final, p)
		exact := new(big.Int).Mul(big.NewInt(int64(final)), big.NewInt(int64(p)))
		exact.Add(exact, big.NewInt(99)).Div(exact, big.NewInt(100))
		if want := int(exact.Int64()); p > 0 && target != max(1, want) {
			t.Fatalf("TargetFor(%d, %d) = %d, exactly %d", final, p, target, want)
		}
		if p < 100 && TargetFor(final, p+1) < target {
			t.Fatalf("a larger share of %d needs fewer replicas at %d %%", final, p+1)
		}
		source := SourceAfter(n, 0, seed, p)
		if source < 0 || source > n {
			t.Fatalf("SourceAfter(%d, 0, %d, %d) = %d", n, seed, p, source)
		}
		if p < 100 && SourceAfter(n, 0, seed, p+1) > source {
			t.Fatalf("a smaller share of %d needs more replicas at %d %%", n, p+1)
		}
		if left := SourceAfter(n, min(final, n), seed, 100); left != min(final, n) {
			t.Fatalf("%d of %d stay at the end, not %d", left, n, min(final, n))
		}
	})
}

// Whatever stands and whatever is asked: rungs climb, nothing is negative, a
// same-size swap never plans less than what stood, and the last rung carries all.
func TestJourneysNever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Basis{
			SourceReplicas: rapid.IntRange(1, 400).Draw(t, "source"),
			TargetReplicas: rapid.IntRange(0, 400).Draw(t, "target"),
		}
		b.SourceBounds = Bounds{Min: rapid.IntRange(1, b.SourceReplicas).Draw(t, "min"), Max: rapid.IntRange(b.SourceReplicas, 500).Draw(t, "max")}
		if b.TargetReplicas > 0 {
			b.Seed = rapid.IntRange(0, 99).Draw(t, "seed")
			b.TargetBounds = Bounds{Min: 1, Max: b.TargetReplicas}
		}
		s := Spec{Strategy: rapid.SampledFrom([]Strategy{Canary, BlueGreen, Rolling}).Draw(t, "strategy")}
		same := true
		if rapid.Bool().Draw(t, "own final") {
			n := rapid.IntRange(1, 400).Draw(t, "final")
			s.FinalTarget, same = &n, n >= b.SourceReplicas+b.TargetReplicas
		}
		j, problems := NewJourney(s, b, DefaultTimings())
		if len(problems) > 0 || len(j.Rungs) == 0 {
			t.Fatalf("no journey: %v", problems)
		}
		percent, source := j.Seed, j.Source
		for i, r := range j.Rungs {
			if r.Percent < percent || r.Target < r.Need || r.Need < 1 || r.Source < 0 || r.Source > source {
				t.Fatalf("rung %d of %+v", i, j)
			}
			need := j.NeedAt(r.Percent)
			if r.Source < need.Source || r.Need < need.Target || need.Target > j.FinalTarget {
				t.Fatalf("rung %d has %+v, its share needs %+v", i, r, need)
			}
			if same && b.Seed == 0 && b.TargetReplicas == 0 && r.Source+r.Target < j.Source {
				t.Fatalf("rung %d plans %d of %d", i, r.Source+r.Target, j.Source)
			}
			if same && r.Source+max(r.Target, b.TargetReplicas) < j.Source {
				t.Fatalf("rung %d plans %d of %d", i, r.Source+r.Target, j.Source)
			}
			percent, source = r.Percent, r.Source
		}
		last := j.Rungs[len(j.Rungs)-1]
		if last.Percent != 100 || last.Need < j.FinalTarget || last.Source != 0 || last.Target > max(j.LandingMax, j.Target) {
			t.Fatalf("last rung %+v of %+v", last, j)
		}
	})
}

// The largest split that can be served is never above what is served, never below
// what stood, and needs no more than is ready unless nothing fits.
func TestServable(t *testing.T) {
	j, _ := NewJourney(Spec{Strategy: Canary, Steps: steps(50, 100)}, serving(10), DefaultTimings())
	for _, c := range []struct {
		name                    string
		percent, source, target int
		want                    int
	}{
		{"all ready", 50, 10, 5, 50},
		{"two of five target replicas, whole source", 50, 10, 2, 20},
		{"no target, whole source", 50, 10, 0, 0},
		{"no target, half a source", 50, 5, 0, 50},
		{"no target, more than half a source", 50, 7, 0, 30},
		{"one source replica short", 50, 4, 5, 50},
		{"all of it lost", 100, 5, 0, 50},
		{"everything lost", 50, 0, 0, 50},
	} {
		assert.Equal(t, c.want, j.Servable(c.percent, c.source, c.target), c.name)
	}
}

// Journeys of a frozen pair go on from the split that stands.
func TestFrozenPairs(t *testing.T) {
	pair := Basis{SourceReplicas: 3, TargetReplicas: 2, SourceBounds: Bounds{Min: 3, Max: 3}, TargetBounds: Bounds{Min: 2, Max: 3}, Seed: 40}
	percents := func(j Journey) []int {
		var out []int
		for _, r := range j.Rungs {
			out = append(out, r.Percent)
		}
		return out
	}
	j, problems := NewJourney(Spec{Strategy: Canary}, pair, DefaultTimings())
	require.Empty(t, problems)
	assert.Equal(t, []int{50, 100}, percents(j), "of the default ladder what lies above")
	assert.Equal(t, 5, j.FinalTarget, "the pair's replicas")
	assert.Equal(t, 5, j.LandingMin)
	assert.Equal(t, 5, j.LandingMax)

	_, problems = NewJourney(Spec{Strategy: Canary, Steps: steps(30, 100)}, pair, DefaultTimings())
	require.Len(t, problems, 1)
	assert.Equal(t, "canary.steps[0].traffic", problems[0].Field)
	assert.Contains(t, problems[0].String(), "already carries 40 %")

	j, problems = NewJourney(Spec{Strategy: Canary, Steps: steps(40, 100)}, pair, DefaultTimings())
	require.Empty(t, problems, "a first step at the standing share is a warning of the preview")
	assert.Equal(t, []int{40, 100}, percents(j))

	four := 4
	j, _ = NewJourney(Spec{Strategy: BlueGreen, FinalTarget: &four}, Basis{SourceReplicas: 3, TargetReplicas: 6, SourceBounds: Bounds{Min: 3, Max: 3}, TargetBounds: Bounds{Min: 1, Max: 8}, Seed: 40}, DefaultTimings())
	assert.Equal(t, 4, j.Rungs[0].Target, "a floor above the final count would stay for ever")
	assert.Equal(t, 4, j.LandingMin)

	_, problems = NewJourney(Spec{Strategy: BlueGreen, FinalSource: 4}, serving(3), DefaultTimings())
	require.Len(t, problems, 1)
	assert.Equal(t, "finalSourceReplicas", problems[0].Field)
}
