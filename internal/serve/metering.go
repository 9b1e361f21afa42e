package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/meter"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// metering gives the meter the engine's port.
type metering struct{ *meter.Meter }

// Rate sums up a recent window.
func (m metering) Rate(deployment string, window time.Duration) engine.Rate {
	s := m.Recent(deployment, window)
	return engine.Rate{Requests: int64(s.Requests), PerSecond: s.RPS, Since: m.FirstTraffic(deployment)}
}

// Usage sums up a stretch of time that lies in the meter's memory.
func (m metering) Usage(deployment string, from, to time.Time) engine.Usage {
	s := m.Between(deployment, from, to)
	return engine.Usage{Requests: int64(s.Requests), ServerErrors: int64(s.ServerErrors), ErrorRate: s.ErrorRate, PerSecond: s.RPS, P50: s.P50MS, P99: s.P99MS}
}

// Served counts answers to requests that the split sent.
func (m metering) Served(deployment string, minGeneration uint64) int64 {
	return m.SplitAnswers(deployment, minGeneration)
}

// slotKeeper saves the meter's closed slots, so that a step that is soaking when
// the server dies is judged after the restart on all that was measured.
type slotKeeper struct {
	store *store.SQLite
	meter *meter.Meter
	log   *slog.Logger
	since time.Time

	failing bool
}

// memory is how far back the meter reaches and saved slots are of use: the longest
// window that a gate may have, with its lag and confirmation.
const memory = engine.LongestWindow + 5*time.Minute

func (k *slotKeeper) load(ctx context.Context) error {
	saved, err := k.store.Slots(ctx, time.Now().Add(-memory))
	if err != nil {
		return fmt.Errorf("load measurements: %w", err)
	}
	slots := make([]meter.Slot, 0, len(saved))
	for _, row := range saved {
		var slot meter.Slot
		if err := json.Unmarshal(row.Data, &slot); err != nil {
			k.log.Warn("a saved measurement is not readable and is left out", "slot", row.Key, "error", err)
			continue
		}
		slots = append(slots, slot)
	}
	if err := k.meter.Import(slots); err != nil {
		k.log.Warn("some saved measurements are left out", "error", err)
	}
	return nil
}

// run saves every closed slot until ctx ends, and forgets old idempotency answers.
func (k *slotKeeper) run(ctx context.Context) {
	every := time.NewTicker(k.meter.SlotLength())
	defer every.Stop()
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			closed, next := k.meter.Export(k.since)
			err := k.save(ctx, closed)
			if err == nil {
				k.since = next
			}
			if k.tell(err); err != nil {
				continue
			}
		case <-hourly.C:
			if err := k.store.ForgetAnswers(ctx, time.Now().Add(-24*time.Hour)); err != nil {
				k.log.Error("forget old answers", "error", err)
			}
		}
	}
}

// tell logs that saving fails, and that it does again: once each, not once a slot.
func (k *slotKeeper) tell(err error) {
	switch {
	case err != nil && !k.failing:
		k.log.Error("measurements cannot be saved; a restart now would leave a gap", "error", err)
	case err == nil && k.failing:
		k.log.Info("measurements are saved again")
	}
	k.failing = err != nil
}

// seal saves the open slots too, at an orderly stop.
func (k *slotKeeper) seal(ctx context.Context) error { return k.save(ctx, k.meter.Seal(k.since)) }

func (k *slotKeeper) save(ctx context.Context, slots []meter.Slot) error {
	rows := make([]rollout.MeterSlot, 0, len(slots))
	for _, slot := range slots {
		data, err := json.Marshal(slot)
		if err != nil {
			return fmt.Errorf("encode a measurement: %w", err)
		}
		rows = append(rows, rollout.MeterSlot{Key: fmt.Sprintf("%+v", slot.Key()), Start: slot.Start, Data: data})
	}
	return k.store.SaveSlots(ctx, rows, time.Now().Add(-memory))
}

// metrics answers GET /metrics.
func (s *Server) metrics() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s.meter.Collector(), openRollouts{s.store}, work{s.engine, s.store})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// openRollouts counts rollouts that are not over, by state.
type openRollouts struct{ store *store.SQLite }

var openRolloutsDesc = prometheus.NewDesc("sluice_open_rollouts", "Rollouts that are not over, by state.", []string{"state"}, nil)

// Describe tells the one metric.
func (o openRollouts) Describe(ch chan<- *prometheus.Desc) { ch <- openRolloutsDesc }

// Collect reads the store at each scrape.
func (o openRollouts) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	open, err := o.store.OpenRollouts(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(openRolloutsDesc, err)
		return
	}
	counts := map[rollout.State]int{}
	for _, r := range open {
		counts[r.State]++
	}
	for _, state := range rollout.States() {
		if !state.Terminal() {
			ch <- prometheus.MustNewConstMetric(openRolloutsDesc, prometheus.GaugeValue, float64(counts[state]), string(state))
		}
	}
}

// work counts what the engine does.
type work struct {
	engine *engine.Engine
	store  *store.SQLite
}

var (
	turnsDesc        = prometheus.NewDesc("sluice_rollout_turns_total", "Looks at a rollout that was due, since the start.", nil, nil)
	waitingDesc      = prometheus.NewDesc("sluice_rollouts_waiting", "Rollouts that the runner has queued for an instant.", nil, nil)
	unseenDesc       = prometheus.NewDesc("sluice_rollouts_not_taken_up", "Rollouts that were open at the start and have not been looked at since.", nil, nil)
	commitsDesc      = prometheus.NewDesc("sluice_store_commits_total", "Changes that the store took, since the start.", nil, nil)
	transactionsDesc = prometheus.NewDesc("sluice_store_transactions_total", "Transactions that the changes went into, each synced to disk once.", nil, nil)
)

// Describe tells the metrics.
func (w work) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

// Collect reads the counters at each scrape.
func (w work) Collect(ch chan<- prometheus.Metric) {
	runner, written := w.engine.Workload(), w.store.Written()
	for _, m := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{turnsDesc, prometheus.CounterValue, float64(runner.Turns)},
		{waitingDesc, prometheus.GaugeValue, float64(runner.Waiting)},
		{unseenDesc, prometheus.GaugeValue, float64(runner.Unseen)},
		{commitsDesc, prometheus.CounterValue, float64(written.Commits)},
		{transactionsDesc, prometheus.CounterValue, float64(written.Transactions)},
	} {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value)
	}
}
