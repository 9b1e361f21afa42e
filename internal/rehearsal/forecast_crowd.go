package rehearsal

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// crowd is the traffic of a forecast, request by request: arrivals as a Poisson process
// at the rate that the routers give a side, each with a latency and perhaps an error of
// the side's model. Every second of a side has draws of its own, which follow from the
// seed alone, so that windows that overlap agree about what they share.
type crowd struct {
	*meter
	seed   uint64
	models map[string]Model
	last   map[window]measured // of one instant
	at     time.Time
}

// window is what a query looks at, whatever it asks of it.
type window struct {
	deployment string
	from, to   time.Time
	generation uint64
}

// measured is what was drawn in a window.
type measured struct {
	latencies []float64 // milliseconds, sorted
	sum       float64   // of the latencies
	weight    float64   // requests that each one stands for
	requests  float64
	errors    float64
}

// drawn is how many requests a second of a side are drawn one by one; above it each one
// stands for several, whose noise is then a little too large, never too small.
const drawn = 10

// Read measures what was drawn in the window.
func (c *crowd) Read(_ context.Context, q rollout.Query) (rollout.Reading, error) {
	c.queries++
	if c.w.power.dead || c.down {
		return rollout.Reading{}, errDown
	}
	out := c.read(q)
	out.Samples, out.Value = 0, 0
	m := c.measure(window{q.Deployment, q.From, q.To, q.MinGeneration})
	if out.Samples = whole(m.requests); out.Samples > 0 && len(m.latencies) > 0 {
		out.Value = c.value(q, m)
		out.Touched = true
	}
	c.w.watch.read(q, out)
	return out, nil
}

// value is the statistic that a query asks for.
func (c *crowd) value(q rollout.Query, m measured) float64 {
	n := len(m.latencies)
	switch q.Metric {
	case rollout.RouterErrorRate:
		return m.errors / m.requests
	case rollout.InflightRequests: // Little: the time that requests spend, over the time
		ready := c.w.ready(c.w.source)
		if q.Deployment == c.w.target.id {
			ready = c.w.ready(c.w.target)
		}
		return m.sum * m.weight / 1000 / q.To.Sub(q.From).Seconds() / float64(max(1, ready))
	case rollout.RouterLatency:
	}
	if q.Stat == rollout.StatPercentile {
		rank := int(math.Ceil(float64(q.Percentile) / 100 * float64(n)))
		return m.latencies[max(1, rank)-1]
	}
	return m.sum / float64(n)
}

// measure draws a window, once for all the rules that look at it.
func (c *crowd) measure(in window) measured {
	if !c.at.Equal(c.w.now) || c.last == nil {
		c.at, c.last = c.w.now, map[window]measured{}
	}
	if m, ok := c.last[in]; ok {
		return m
	}
	m := measured{weight: 1}
	q := rollout.Query{Deployment: in.deployment, MinGeneration: in.generation}
	for _, s := range c.spans {
		from, to := later(s.from, in.from), s.to
		if in.to.Before(to) {
			to = in.to
		}
		if rate := s.c.requests(q); rate > 0 && to.After(from) {
			c.draw(&m, in.deployment, rate, from, to)
		}
	}
	sort.Float64s(m.latencies)
	c.last[in] = m
	return m
}

// draw adds the requests of a stretch at one rate.
func (c *crowd) draw(m *measured, deployment string, rate float64, from, to time.Time) {
	model := c.models[deployment]
	each := max(1, rate/drawn)
	m.weight = max(m.weight, each)
	for second := from.Truncate(time.Second); second.Before(to); second = second.Add(time.Second) {
		r := c.second(deployment, second)
		for t := r.ExpFloat64() * each / rate; t < 1; t += r.ExpFloat64() * each / rate {
			latency := model.Latency.Sample(r).Seconds() * 1000 * model.Factor
			failed := r.Float64() < model.ErrorRate
			at := second.Add(time.Duration(t * float64(time.Second)))
			if at.Before(from) || !at.Before(to) {
				continue
			}
			m.latencies = append(m.latencies, latency)
			m.sum += latency
			m.requests += each
			if failed {
				m.errors += each
			}
		}
	}
}

// second is the source of a side's draws in one second.
func (c *crowd) second(deployment string, at time.Time) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(deployment))                                // never fails
	return rand.New(rand.NewPCG(c.seed^h.Sum64(), uint64(at.Unix()))) //nolint:gosec // repeatable, not secret
}
