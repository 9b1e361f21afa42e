package meter

import "time"

// Summary is what a view shows of one deployment.
type Summary struct {
	Deployment   string        `json:"deployment"`
	Window       time.Duration `json:"-"`            // that the numbers below cover
	Requests     uint64        `json:"requests"`     // that ended in the window, canceled ones included
	ServerErrors uint64        `json:"serverErrors"` // of these
	Canceled     uint64        `json:"canceled"`     // of these
	RPS          float64       `json:"rps"`          // requests ÷ window
	ErrorRate    float64       `json:"errorRate"`    // server errors ÷ answered, 0 to 1; 0 with no answer
	AvgMS        float64       `json:"avgMs"`        // of answered requests; 0 with no answer, like the rest
	P50MS        float64       `json:"p50Ms"`
	P95MS        float64       `json:"p95Ms"`
	P99MS        float64       `json:"p99Ms"`
	MeanInflight float64       `json:"meanInflight"` // requests in flight, time average
	MeanReady    float64       `json:"meanReady"`    // ready replicas, time average
	Inflight     uint64        `json:"inflight"`     // right now
	Ready        int           `json:"ready"`        // right now
	Total        Totals        `json:"total"`        // since the meter started
}

// Totals are counters since the meter started.
type Totals struct {
	OK           uint64 `json:"ok"`
	ServerErrors uint64 `json:"serverErrors"`
	Canceled     uint64 `json:"canceled"`
}

// Point is one stretch of a chart.
type Point struct {
	Start time.Time `json:"start"`
	Summary
}

// Recent sums up the last window of a deployment over all generations, up to now
// and with the open slot, for eyes and not for gates. The window is aligned
// outward to a slot's start and cut to the time since the meter has data.
func (m *Meter) Recent(deployment string, length time.Duration) Summary {
	now := m.now().UnixNano()
	from := m.slotStart(now - int64(max(length, 0)))
	return m.summary(deployment, span{max(from, m.first()), now}, now)
}

// Between sums up a stretch of time like Recent, as far back as the meter
// remembers: the slot that holds its start counts whole, and what ended after to
// does not.
func (m *Meter) Between(deployment string, from, to time.Time) Summary {
	now := m.now().UnixNano()
	start := max(m.slotStart(nanos(from)), m.first(), now-m.retention)
	return m.summary(deployment, span{start, min(nanos(to), now)}, now)
}

// FirstTraffic returns the start of the earliest slot in memory that counted a request
// of the deployment, the zero time when there is none. It tells young traffic from thin.
func (m *Meter) FirstTraffic(deployment string) time.Time {
	l := m.known(deployment)
	if l == nil {
		return time.Time{}
	}
	var first time.Time
	seen := func(t *tally) {
		if at := time.Unix(0, t.start); t.counts != [classes]uint64{} && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(m.now().UnixNano())
	for _, f := range l.flows {
		seen(&f.open)
		for _, ts := range [][]tally{f.closed, f.imported} {
			for i := range ts {
				seen(&ts[i])
			}
		}
	}
	return first
}

// Points cuts [from, to) into stretches of one step, itself rounded up to whole
// slots, aligned to the step so that the charts of two deployments share their
// axis. Only closed slots are read.
func (m *Meter) Points(deployment string, from, to time.Time, step time.Duration) []Point {
	now := m.now().UnixNano()
	width := max((int64(step)+m.slot-1)/m.slot, 1) * m.slot
	oldest := now - m.retention
	first := max(nanos(from), oldest)
	first -= first % width
	var ps []Point
	for start := first; start+width <= min(nanos(to), m.slotStart(now)); start += width {
		ps = append(ps, Point{Start: time.Unix(0, start), Summary: m.summary(deployment, span{start, start + width}, now)})
	}
	return ps
}

// first returns the start of the earliest stretch that was watched.
func (m *Meter) first() int64 {
	m.watch.mu.Lock()
	defer m.watch.mu.Unlock()
	if len(m.watch.spans) > 0 {
		return min(m.started, m.watch.spans[0].from)
	}
	return m.started
}

func (m *Meter) summary(deployment string, in span, now int64) Summary {
	s := Summary{Deployment: deployment, Window: time.Duration(max(in.to-in.from, 0))}
	l := m.known(deployment)
	if l == nil {
		return s
	}
	var w window
	l.mu.Lock()
	defer l.mu.Unlock()
	// The slot that holds the window's start counts whole, see Recent.
	l.gather(&w, span{m.slotStart(in.from), in.to}, now, 0)
	l.present(&s, &w, in)
	s.fill(&w)
	return s
}

// present adds what only the present knows, and the open slots if the window
// reaches them. The caller holds the lock and has settled the lane.
func (l *lane) present(s *Summary, w *window, in span) {
	s.Ready = int(l.ready)
	s.Total = l.total.totals()
	for _, f := range l.flows {
		s.Inflight += f.inflight
		if f.open.start < in.to {
			w.add(&f.open)
			if f.live != nil {
				w.sketch.Merge(f.live)
			}
		}
	}
	if l.meter.slotStart(l.readyUntil) < in.to {
		w.ready += l.readyOpen
	}
}

func (s *Summary) fill(w *window) {
	answered := w.answered()
	s.ServerErrors, s.Canceled = w.counts[ServerError], w.counts[Canceled]
	s.Requests = answered + s.Canceled
	if s.Window > 0 {
		s.RPS = float64(s.Requests) / s.Window.Seconds()
		s.MeanInflight = float64(w.inflight) / float64(s.Window)
		s.MeanReady = float64(w.ready) / float64(s.Window)
	}
	if answered == 0 {
		return
	}
	s.ErrorRate = float64(s.ServerErrors) / float64(answered)
	s.AvgMS = float64(w.latency) / float64(answered) / 1000
	s.P50MS = w.sketch.Percentile(50) / 1000
	s.P95MS = w.sketch.Percentile(95) / 1000
	s.P99MS = w.sketch.Percentile(99) / 1000
}
