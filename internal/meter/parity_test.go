package meter

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// queries asks for everything in the catalogue.
func queries(from, to time.Time) []rollout.Query {
	return []rollout.Query{
		latencyAvg("dep_a", from, to), percentile("dep_a", 50, from, to), percentile("dep_a", 95, from, to),
		errorRate("dep_a", from, to), inflight(from, to),
	}
}

// load is a bimodal stream of requests: 60 % fast rejects around 3 ms, the rest
// real answers around 700 ms.
type load struct{ rng *rand.Rand }

func (l load) took() time.Duration {
	mean, sigma := 3.0, 0.4
	if l.rng.Float64() < 0.4 {
		mean, sigma = 700, 0.45
	}
	return time.Duration(mean * math.Exp(sigma*l.rng.NormFloat64()) * float64(time.Millisecond))
}

// side collects what the meter should say of one deployment.
type side struct {
	took   []time.Duration
	errors int
}

func (s *side) percentileMS(p int) float64 {
	sorted := slices.Sorted(slices.Values(s.took))
	return float64(sorted[(p*len(sorted)+99)/100-1]) / float64(time.Millisecond)
}

// TestAATheSameTrafficReadsTheSame puts one stream of 20,000 requests on two
// names by a fair and by a 90/10 coin, and compares them.
func TestAATheSameTrafficReadsTheSame(t *testing.T) {
	for _, share := range []float64{0.5, 0.1} {
		c := newClock()
		m, start := meterAt(c), c.now()
		coin := load{rand.New(rand.NewPCG(1, 2))}
		sides := map[string]*side{"dep_a": {}, "dep_b": {}}
		for range 20_000 {
			name := "dep_a"
			if coin.rng.Float64() < share {
				name = "dep_b"
			}
			took, class := coin.took(), OK
			if coin.rng.Float64() < 0.02 {
				class = ServerError
				sides[name].errors++
			}
			f := m.Begin(name, 1)
			c.pass(took)
			f.End(class)
			c.pass(5*time.Millisecond - took) // requests overlap; the stream has 200 rps
			sides[name].took = append(sides[name].took, took)
		}
		c.pass(10 * time.Second) // the last ones end
		to := c.now().Truncate(time.Second)
		n := map[string]float64{}
		for name, s := range sides {
			rate := read(t, m, errorRate(name, start, to))
			n[name] = float64(rate.Samples)
			assert.Equal(t, len(s.took), rate.Samples)
			assert.InDelta(t, float64(s.errors)/n[name], rate.Value, 1e-12)
			for _, p := range []int{50, 95, 99} {
				assert.InEpsilon(t, s.percentileMS(p), read(t, m, percentile(name, p, start, to)).Value, 0.0079)
			}
		}
		// 99.9 % of the coin, then of each class.
		assert.InDelta(t, 20_000*share, n["dep_b"], 3.3*math.Sqrt(20_000*share*(1-share)))
		pooled := 0.02
		sigma := math.Sqrt(pooled * (1 - pooled) * (1/n["dep_a"] + 1/n["dep_b"]))
		a, b := read(t, m, errorRate("dep_a", start, to)).Value, read(t, m, errorRate("dep_b", start, to)).Value
		assert.InDelta(t, a, b, 3.3*sigma)
		// p95 of lognormal(700 ms, .45) at 20,000·share samples: ±4 % at 3.3 σ for the smaller side.
		p95a, p95b := read(t, m, percentile("dep_a", 95, start, to)).Value, read(t, m, percentile("dep_b", 95, start, to)).Value
		assert.InEpsilon(t, p95a, p95b, 0.0158+0.08)
	}
}

// TestAnInjectedDifferenceIsReadBack gives the target 10 ms, 1 % of 503 and a slow
// tail of 5 % more than the source, on the very same draws.
func TestAnInjectedDifferenceIsReadBack(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	src, rng := load{rand.New(rand.NewPCG(3, 4))}, rand.New(rand.NewPCG(5, 6))
	for i := range 20_000 {
		took := src.took()
		serve(m, c, "dep_a", 1, took, OK)
		c.pass(-took)
		slower, class := took+10*time.Millisecond, OK
		if i%100 == 7 {
			class = ServerError
		}
		if rng.Float64() < 0.05 {
			slower *= 2
		}
		serve(m, c, "dep_b", 1, slower, class)
		c.pass(5*time.Millisecond - slower)
	}
	c.pass(20 * time.Second)
	to := c.now().Truncate(time.Second)
	diff := func(q func(string) rollout.Query) float64 {
		return read(t, m, q("dep_b")).Value - read(t, m, q("dep_a")).Value
	}
	assert.InDelta(t, 0.01, diff(func(d string) rollout.Query { return errorRate(d, start, to) }), 1e-12)
	p50 := diff(func(d string) rollout.Query { return percentile(d, 50, start, to) })
	assert.InDelta(t, 10, p50, 0.02*read(t, m, percentile("dep_b", 50, start, to)).Value+0.5)
	avg := diff(func(d string) rollout.Query { return latencyAvg(d, start, to) })
	base := read(t, m, latencyAvg("dep_a", start, to)).Value
	assert.InDelta(t, 10+0.05*(base+10), avg, 0.01*base, "+10 ms and a tail of 5 %% at twice the time")
}
