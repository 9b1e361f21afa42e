package meter

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// seriesCap bounds the deployments that are exported by name. Names come from
// routes and never from requests; the cap is for an operator who makes thousands.
const seriesCap = 500

// otherDeployments takes the counts of those beyond the cap.
const otherDeployments = "other"

// recentWindow is what the exported quantiles cover.
const recentWindow = 5 * time.Minute

var (
	requestsDesc = prometheus.NewDesc("sluice_router_requests_total",
		"Requests that ended, by how: ok, server_error, canceled.", []string{"deployment", "class"}, nil)
	latencyDesc = prometheus.NewDesc("sluice_router_latency_seconds",
		"Duration of answered requests from side choice to last byte. For dashboards; gates read the sketch.",
		[]string{"deployment"}, nil)
	quantilesDesc = prometheus.NewDesc("sluice_router_latency_recent_seconds",
		"Quantiles of router latency over the last 5 minutes, within 0.79 %.", []string{"deployment"}, nil)
	inflightDesc = prometheus.NewDesc("sluice_router_inflight_requests",
		"Requests in flight.", []string{"deployment"}, nil)
	readyDesc = prometheus.NewDesc("sluice_router_ready_replicas",
		"Replicas that may take a request.", []string{"deployment"}, nil)
)

// exportEdges are the upper bounds of the exported histogram in microseconds, two
// an octave from about 1 ms to 18 minutes. Each is an edge of the sketch's own
// grid, so the exported counts are exact.
var exportEdges = func() []uint64 {
	var es []uint64
	for octave := 10; octave <= 30; octave++ {
		es = append(es, 1<<octave, 3<<(octave-1))
	}
	return es
}()

// Collector returns the meter as a Prometheus collector. Its labels are bounded:
// deployments that were routed to (at most 500) and three classes.
func (m *Meter) Collector() prometheus.Collector { return collector{m} }

type collector struct{ meter *Meter }

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, latencyDesc, quantilesDesc, inflightDesc, readyDesc} {
		ch <- d
	}
}

// exported is what one deployment, or all of those beyond the cap, exports.
type exported struct {
	total    totals
	recent   window
	inflight uint64
	ready    uint64
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	names := c.meter.Deployments()
	var rest exported
	for i, name := range names {
		l := c.meter.known(name)
		switch {
		case l == nil: // forgotten since
		case i < seriesCap:
			var e exported
			e.add(l)
			e.send(ch, name)
		default:
			rest.add(l)
		}
	}
	if len(names) > seriesCap {
		rest.send(ch, otherDeployments)
	}
}

func (e *exported) add(l *lane) {
	now := l.meter.now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gather(&e.recent, span{now - int64(recentWindow), now}, now, 0)
	for class, n := range l.total.counts {
		e.total.counts[class] += n
	}
	e.total.latency += l.total.latency
	e.total.sketch.Merge(&l.total.sketch)
	for _, f := range l.flows {
		e.inflight += f.inflight
	}
	e.ready += l.ready
}

func (e *exported) send(ch chan<- prometheus.Metric, name string) {
	for class, n := range e.total.counts {
		ch <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n), name, Class(class).String())
	}
	below := make(map[float64]uint64, len(exportEdges))
	for _, edge := range exportEdges {
		below[float64(edge)/1e6] = e.total.sketch.Below(edge)
	}
	ch <- prometheus.MustNewConstHistogram(latencyDesc, e.total.sketch.Count(), float64(e.total.latency)/1e6, below, name)
	quantiles := map[float64]float64{}
	for _, q := range []float64{0.5, 0.95, 0.99} {
		quantiles[q] = math.NaN()
		if e.recent.sketch.Count() > 0 {
			quantiles[q] = e.recent.sketch.Quantile(q) / 1e6
		}
	}
	ch <- prometheus.MustNewConstSummary(quantilesDesc, e.recent.answered(), float64(e.recent.latency)/1e6, quantiles, name)
	ch <- prometheus.MustNewConstMetric(inflightDesc, prometheus.GaugeValue, float64(e.inflight), name)
	ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, float64(e.ready), name)
}
