package meter

import (
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// clock is time in a test's hand. It starts on a slot's edge.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Unix(1_700_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// meterAt makes a meter of 1 s slots.
func meterAt(c *clock) *Meter {
	return New(Config{Slot: time.Second, Retention: 5 * time.Minute, Tolerance: time.Millisecond, Now: c.now})
}

// serve lets one request take its time.
func serve(m *Meter, c *clock, deployment string, generation uint64, took time.Duration, class Class) {
	f := m.Begin(deployment, generation)
	c.pass(took)
	f.End(class)
}

func latencyAvg(deployment string, from, to time.Time) rollout.Query {
	return rollout.Query{Deployment: deployment, Metric: rollout.RouterLatency, Stat: rollout.StatAvg, From: from, To: to}
}

func percentile(deployment string, p int, from, to time.Time) rollout.Query {
	return rollout.Query{Deployment: deployment, Metric: rollout.RouterLatency, Stat: rollout.StatPercentile, Percentile: p, From: from, To: to}
}

func errorRate(deployment string, from, to time.Time) rollout.Query {
	return rollout.Query{Deployment: deployment, Metric: rollout.RouterErrorRate, Stat: rollout.StatAvg, From: from, To: to}
}

func inflight(from, to time.Time) rollout.Query {
	return rollout.Query{Deployment: "dep_a", Metric: rollout.InflightRequests, Stat: rollout.StatAvg, From: from, To: to}
}
