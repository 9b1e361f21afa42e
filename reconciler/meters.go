package reconciler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// meters are what the reconciler tells of itself. Labels are names of the configuration
// and never text of others, so their number is bounded.
type meters struct {
	registry   *prometheus.Registry
	standingBy prometheus.Gauge
	passes     *prometheus.CounterVec   // by repository and outcome
	seconds    *prometheus.HistogramVec // of a pass, by repository
	lastGood   *prometheus.GaugeVec     // unix seconds of the newest pass without an error
	stacks     *prometheus.GaugeVec     // by repository, stack and phase: 1 or 0
	underWay   *prometheus.GaugeVec     // rollouts, by repository
	parkedFor  *prometheus.GaugeVec     // seconds of the longest park, by repository
	writes     *prometheus.CounterVec   // at the engine, by verb
	reports    *prometheus.CounterVec   // at forges, by repository and kind
	hooks      *prometheus.CounterVec   // deliveries, by repository and outcome
}

func newMeters() *meters {
	name := func(n, help string) (string, string) { return "sluice_reconciler_" + n, help }
	gauge := func(n, help string, labels ...string) *prometheus.GaugeVec {
		n, help = name(n, help)
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: n, Help: help}, labels)
	}
	counter := func(n, help string, labels ...string) *prometheus.CounterVec {
		n, help = name(n, help)
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: n, Help: help}, labels)
	}
	m := &meters{
		registry:   prometheus.NewRegistry(),
		standingBy: prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_reconciler_standing_by", Help: "1 while another process holds the lease."}),
		passes:     counter("passes_total", "Passes, by outcome: ok or error.", "repository", "outcome"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_reconciler_pass_seconds", Help: "How long passes take.", Buckets: prometheus.ExponentialBuckets(0.01, 3, 9),
		}, []string{"repository"}),
		lastGood:  gauge("last_success_timestamp_seconds", "When the newest pass without an error ended.", "repository"),
		stacks:    gauge("stack_phase", "1 for the phase that a stack is in.", "repository", "stack", "phase"),
		underWay:  gauge("rollouts_under_way", "Rollouts that are not over.", "repository"),
		parkedFor: gauge("parked_seconds", "How long the longest of the parks has lasted.", "repository"),
		writes:    counter("engine_writes_total", "Changes sent to the engine.", "verb"),
		reports:   counter("forge_writes_total", "Comments and statuses sent to forges.", "repository", "kind"),
		hooks:     counter("webhook_deliveries_total", "Webhook deliveries, by outcome.", "repository", "outcome"),
	}
	n, help := name("abandoned_git_calls", "Git calls that hang past their deadline and were left alone.")
	abandoned := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: n, Help: help}, func() float64 { return float64(gitsource.Abandoned()) })
	m.registry.MustRegister(abandoned, m.standingBy, m.passes, m.seconds, m.lastGood, m.stacks, m.underWay, m.parkedFor, m.writes, m.reports, m.hooks)
	return m
}

// phases are all that a stack can be in.
func phases() []Phase {
	return []Phase{InStep, Waiting, Applying, RollingOut, Parked, Ahead, Invalid, Failed}
}

// show tells the phase of a stack.
func (m *meters) show(k StackKey, now Phase) {
	for _, p := range phases() {
		v := 0.0
		if p == now {
			v = 1
		}
		m.stacks.WithLabelValues(k.Repository, k.Stack, string(p)).Set(v)
	}
}

// healthRecord is how a repository's passes go. It lives with the process.
type healthRecord struct {
	Began    time.Time
	Ended    time.Time
	LastGood time.Time
	Failures int // passes in a row
	Error    string
	GitError string
	Forge    string               // error of the forge
	UnderWay map[string]int       // rollouts, by stack
	Parked   map[string]time.Time // since when, by stack
	Passes   int
}
