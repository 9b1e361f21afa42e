package meter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheExportShowsWhatWasCounted(t *testing.T) {
	c := newClock()
	m := meterAt(c)
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(m.Collector()))
	m.SetReady("dep_a", 3)
	serve(m, c, "dep_a", 1, 100*time.Millisecond, OK)
	serve(m, c, "dep_a", 2, 3*time.Second, ServerError)
	serve(m, c, "dep_a", 2, time.Second, Canceled)
	m.Begin("dep_a", 2)
	families, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := f.GetName()
			for _, l := range metric.GetLabel() {
				if l.GetName() == "class" {
					name += "/" + l.GetValue()
				}
			}
			got[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			if h := metric.GetHistogram(); h != nil {
				got[name] = float64(h.GetSampleCount())
				for _, b := range h.GetBucket() {
					if b.GetUpperBound() > 0.09 && b.GetUpperBound() < 3 {
						want := 0
						if b.GetUpperBound() > 0.1 {
							want = 1
						}
						assert.EqualValues(t, want, b.GetCumulativeCount(), "%v", b.GetUpperBound())
					}
				}
			}
		}
	}
	assert.Equal(t, map[string]float64{
		"sluice_router_requests_total/ok":           1,
		"sluice_router_requests_total/server_error": 1,
		"sluice_router_requests_total/canceled":     1,
		"sluice_router_latency_seconds":             2,
		"sluice_router_latency_recent_seconds":      0,
		"sluice_router_inflight_requests":           1,
		"sluice_router_ready_replicas":              3,
	}, got)
}

func TestNM13TheSeriesAreBounded(t *testing.T) {
	c := newClock()
	m := meterAt(c)
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(m.Collector()))
	for i := range seriesCap + 100 {
		serve(m, c, fmt.Sprintf("dep_%04d", i), 1, 0, OK)
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "sluice_router_requests_total" {
			assert.Len(t, f.GetMetric(), (seriesCap+1)*int(classes))
			assert.Contains(t, strings.ReplaceAll(fmt.Sprint(f.GetMetric()), "  ", " "), otherDeployments)
		}
	}
	m.Forget("dep_0000")
	assert.Len(t, m.Deployments(), seriesCap+99)
}

func TestAChartCutsTheSameTimeForEveryDeployment(t *testing.T) {
	c := newClock()
	m, start := meterAt(c), c.now()
	m.SetReady("dep_a", 2)
	for range 10 {
		serve(m, c, "dep_a", 1, 500*time.Millisecond, OK)
		c.pass(500 * time.Millisecond)
	}
	a, b := m.Points("dep_a", start, c.now(), 2*time.Second), m.Points("dep_b", start, c.now(), 2*time.Second)
	require.Len(t, a, 5)
	require.Len(t, b, 5)
	for i := range a {
		assert.Equal(t, a[i].Start, b[i].Start)
		assert.Equal(t, uint64(2), a[i].Requests)
		assert.InDelta(t, 1, a[i].RPS, 0)
		assert.InDelta(t, 0.5, a[i].MeanInflight, 1e-9)
		assert.InDelta(t, 2, a[i].MeanReady, 1e-9)
		assert.InEpsilon(t, 500, a[i].P95MS, 0.0079)
		assert.Zero(t, b[i].Requests)
	}
	s := m.Recent("dep_a", time.Hour)
	assert.Equal(t, 10*time.Second, s.Window, "cut to the time since there is data")
	assert.Equal(t, uint64(10), s.Requests)
}

func BenchmarkBeginEnd(b *testing.B) {
	m := New(Config{})
	b.ReportAllocs()
	for b.Loop() {
		m.Begin("dep_a", 1).End(OK)
	}
}
