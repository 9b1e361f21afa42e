package meter

import (
	"context"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// window is what a reading is made of: the slots of one deployment added up.
type window struct {
	tally
	sketch Sketch
}

// Read answers a query from the slots that lie wholly inside its window.
//
// Samples counts the requests that ended in the window: answered ones for
// latency and error rate, canceled ones too for in-flight, which has a sample as
// soon as any request was under way. With no sample there is no value. For
// inflight_requests a window without a ready replica is not available and has no
// samples either. A window that reaches further back than the retention is not
// complete. An unknown metric or statistic is an error, an unknown deployment is a
// reading without samples.
func (m *Meter) Read(ctx context.Context, q rollout.Query) (rollout.Reading, error) {
	if err := ctx.Err(); err != nil {
		return rollout.Reading{}, err
	}
	if err := known(q); err != nil {
		return rollout.Reading{}, err
	}
	in := m.align(span{nanos(q.From), nanos(q.To)})
	now := m.now().UnixNano()
	complete := in.from < in.to && in.from >= now-m.retention && m.watch.missing(in, span{m.started, now}) <= m.tolerance
	var w window
	if l := m.known(q.Deployment); l != nil {
		l.collect(&w, in, now, q.MinGeneration)
	}
	r := w.reading(q)
	r.Complete = complete
	return r, nil
}

// known refuses what is not in the catalogue.
func known(q rollout.Query) error {
	switch q.Metric {
	case rollout.RouterErrorRate, rollout.InflightRequests:
		if q.Stat != rollout.StatAvg && q.Stat != "" {
			return fmt.Errorf("meter: %s has no statistic %q", q.Metric, q.Stat)
		}
	case rollout.RouterLatency:
		switch {
		case q.Stat == rollout.StatAvg:
		case q.Stat == rollout.StatPercentile && q.Percentile >= 1 && q.Percentile <= 99:
		default:
			return fmt.Errorf("meter: %s has no statistic %q %d", q.Metric, q.Stat, q.Percentile)
		}
	default:
		return fmt.Errorf("meter: no metric %q, only %v", q.Metric, rollout.Metrics())
	}
	return nil
}

// align moves a window inward to whole slots.
func (m *Meter) align(s span) span {
	from := m.slotStart(s.from)
	if from < s.from {
		from += m.slot
	}
	return span{from, max(m.slotStart(s.to), from)}
}

// collect adds the lane's slots inside the window, under the generation or later.
func (l *lane) collect(w *window, in span, now int64, minGeneration uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gather(w, in, now, minGeneration)
}

// gather is collect for a caller that holds the lock.
func (l *lane) gather(w *window, in span, now int64, minGeneration uint64) {
	l.settle(now)
	for generation, f := range l.flows {
		if generation >= minGeneration {
			w.take(f.closed, in)
			w.take(f.imported, in)
		}
	}
	for _, r := range l.readyRuns {
		w.ready += r.within(in)
	}
	l.levels.eachRun(&l.meter.watch, func(r run) { w.ready += r.within(in) })
}

// take adds those slots that lie wholly inside.
func (w *window) take(ts []tally, in span) {
	for i := range ts {
		if t := &ts[i]; t.start >= in.from && t.end() <= in.to {
			w.add(t)
			w.mergeSketch(t.sketch)
		}
	}
}

// mergeSketch adds a compact sketch. It was written by this package or checked by
// decode, so it cannot be corrupt.
func (w *window) mergeSketch(b []byte) {
	if err := w.sketch.MergeBinary(b); err != nil {
		panic(err)
	}
}

// reading makes the one number that the query asks for.
func (w *window) reading(q rollout.Query) rollout.Reading {
	answered := w.answered()
	r := rollout.Reading{Samples: int(answered), Touched: w.inflight > 0 || answered+w.counts[Canceled] > 0}
	switch {
	case q.Metric == rollout.InflightRequests:
		if w.ready == 0 {
			return rollout.Reading{Touched: r.Touched}
		}
		r.Samples = int(answered + w.counts[Canceled])
		if r.Touched {
			r.Samples = max(r.Samples, 1) // requests that hang are what this metric is for
		}
		r.Value = float64(w.inflight) / float64(w.ready)
	case answered == 0:
	case q.Metric == rollout.RouterErrorRate:
		r.Value = float64(w.counts[ServerError]) / float64(answered)
	case q.Stat == rollout.StatAvg:
		r.Value = float64(w.latency) / float64(answered) / 1000
	default:
		r.Value = w.sketch.Percentile(q.Percentile) / 1000
		r.ErrorPct = SketchErrorPct
	}
	return r
}
