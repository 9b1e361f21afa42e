package rollout_test

import (
	"math"
	"slices"
	"time"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// stretch is a value that holds from an instant until the next stretch.
type stretch struct {
	since time.Time
	value float64
}

// series is a value that changes by script.
type series []stretch

func (s *series) set(now time.Time, v float64) { *s = append(*s, stretch{now, v}) }

// at returns the value in force at an instant.
func (s series) at(t time.Time) float64 {
	v := 0.0
	for _, st := range s {
		if st.since.After(t) {
			break
		}
		v = st.value
	}
	return v
}

// signal names one metric of one deployment.
type signal struct {
	deployment string
	metric     Metric
}

// meter gives readings by script: a rate of requests, the share that each side was
// given, a value for each signal, and stretches in which it saw nothing.
type meter struct {
	rate    series            // requests a second on the pair
	mute    map[string]series // 1 while a deployment is given no request at all
	values  map[signal]series
	blind   series // 1 while the meter does not watch
	queries []asked
}

// asked is one query and when it was asked.
type asked struct {
	at time.Time
	q  Query
}

func newMeter() *meter {
	return &meter{mute: map[string]series{}, values: map[signal]series{}}
}

// read integrates the window stretch by stretch. The value is the mean over the
// requests that count; one NaN makes it NaN.
func (m *meter) read(q Query, target string, history []span) Reading {
	out := Reading{Complete: true}
	values := m.values[signal{q.Deployment, q.Metric}]
	var requests, sum float64
	marks := m.marks(q, values, history)
	for i, from := range marks[:len(marks)-1] {
		if m.blind.at(from) > 0 {
			out.Complete = false
		}
		n := m.rate.at(from) * share(history, from, q, target) * marks[i+1].Sub(from).Seconds()
		if n <= 0 || m.mute[q.Deployment].at(from) > 0 {
			continue
		}
		requests += n
		sum += n * values.at(from)
	}
	out.Samples = int(math.Round(requests))
	if requests > 0 {
		out.Value = math.Round(sum/requests*1e6) / 1e6
	}
	return out
}

// marks are the instants of the window at which something changes, its ends included.
func (m *meter) marks(q Query, values series, history []span) []time.Time {
	out := []time.Time{q.From, q.To}
	for _, s := range []series{m.rate, m.blind, m.mute[q.Deployment], values} {
		for _, st := range s {
			out = append(out, st.since)
		}
	}
	for _, s := range history {
		out = append(out, s.since)
	}
	out = slices.DeleteFunc(out, func(t time.Time) bool { return t.Before(q.From) || t.After(q.To) })
	slices.SortFunc(out, time.Time.Compare)
	return slices.Compact(out)
}

// share is the part of the pair's requests that counts for a query at an instant.
func share(history []span, t time.Time, q Query, target string) float64 {
	var now span
	for _, s := range history {
		if !s.since.After(t) {
			now = s
		}
	}
	switch {
	case now.generation < q.MinGeneration:
		return 0
	case q.Deployment == target:
		return float64(now.percent) / 100
	}
	return float64(100-now.percent) / 100
}
