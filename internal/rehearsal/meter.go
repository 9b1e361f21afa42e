package rehearsal

import (
	"context"
	"math"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// signal names one metric of one deployment.
type signal struct {
	deployment string
	metric     rollout.Metric
}

// conditions are what the meter sees for as long as nothing changes.
type conditions struct {
	rate   float64         // requests a second on the pair
	mute   map[string]bool // deployments that are given no request
	values map[signal]float64
	blind  bool
	copies []served // of each router
	target string
}

// served is what one copy of the router serves of the pair.
type served struct {
	percent    int
	generation uint64
}

// span is a stretch of the engine's clock under one set of conditions. Where that clock
// jumped ahead there is a hole, and where it went back spans overlap.
type span struct {
	from, to time.Time
	c        *conditions
}

// meter answers from what the routers really served, by the engine's clock. What is
// newer than the ingestion lag is half there and wrong.
type meter struct {
	w       *World
	now     conditions
	frozen  *conditions // a copy of now that spans may hold; nil once now has changed
	spans   []span
	lag     time.Duration
	down    bool
	queries int
	looks   map[string]*looks // of a script, by deployment
}

func newMeter(w *World, lag time.Duration) *meter {
	return &meter{w: w, lag: lag, now: conditions{rate: 5, mute: map[string]bool{}, values: map[signal]float64{}}}
}

// change alters the conditions from now on.
func (m *meter) change(do func(c *conditions)) {
	do(&m.now)
	m.frozen = nil
}

// pass notes that time went by.
func (m *meter) pass(from, to time.Time) {
	if !to.After(from) {
		return
	}
	if m.frozen == nil {
		c := m.now
		c.mute, c.values = map[string]bool{}, map[signal]float64{}
		for k, v := range m.now.mute {
			c.mute[k] = v
		}
		for k, v := range m.now.values {
			c.values[k] = v
		}
		m.frozen = &c
	}
	if n := len(m.spans); n > 0 && m.spans[n-1].c == m.frozen && m.spans[n-1].to.Equal(from) {
		m.spans[n-1].to = to
		return
	}
	m.spans = append(m.spans, span{from, to, m.frozen})
}

// Read integrates the window stretch by stretch. The value is the mean over the
// requests that count; one NaN makes it NaN.
func (m *meter) Read(_ context.Context, q rollout.Query) (rollout.Reading, error) {
	m.queries++
	if m.w.power.dead || m.down {
		return rollout.Reading{}, errDown
	}
	out, err := m.scripted(q, m.read(q))
	if err != nil {
		return out, err
	}
	m.w.watch.read(q, out)
	return out, nil
}

func (m *meter) read(q rollout.Query) rollout.Reading {
	out := rollout.Reading{Complete: true}
	var requests, sum float64
	var covered time.Duration
	edge := m.w.engineNow().Add(-m.lag)
	for _, s := range m.spans {
		from, to := later(s.from, q.From), s.to
		if q.To.Before(to) {
			to = q.To
		}
		if !to.After(from) {
			continue
		}
		covered += to.Sub(from)
		out.Complete = out.Complete && !s.c.blind
		n := s.c.requests(q) * to.Sub(from).Seconds()
		if n <= 0 {
			continue
		}
		v := s.c.values[signal{q.Deployment, q.Metric}]
		if to.After(edge) { // the newest buckets are half filled
			n, v = n/2, v*100+1
		}
		requests, sum = requests+n, sum+n*v
	}
	out.Complete = out.Complete && covered >= q.To.Sub(q.From)
	if out.Samples = int(math.Round(requests)); requests > 0 {
		out.Value = math.Round(sum/requests*1e6) / 1e6
	}
	return out
}

// requests a second that count for a query: those of the copies that serve its
// generation or a later one.
func (c *conditions) requests(q rollout.Query) float64 {
	if c.mute[q.Deployment] || len(c.copies) == 0 {
		return 0
	}
	var share float64
	for _, s := range c.copies {
		switch {
		case s.generation < q.MinGeneration:
		case q.Deployment == c.target:
			share += float64(s.percent) / 100
		default:
			share += float64(100-s.percent) / 100
		}
	}
	return c.rate * share / float64(len(c.copies))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Rate is not asked by the runner.
func (m *meter) Rate(string, time.Duration) engine.Rate {
	return engine.Rate{PerSecond: m.now.rate}
}

// Usage is not asked by the runner.
func (m *meter) Usage(string, time.Time, time.Time) engine.Usage { return engine.Usage{} }

// Forget is told when a deployment is deleted, which no rehearsal does.
func (m *meter) Forget(string) {}
