package modelserver_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
)

func TestLatencyReadsWhatItWrites(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "0s",
		"120ms":                 "120ms",
		"normal( 120ms , 20ms)": "normal(120ms,20ms)",
		"LogNormal(120ms,0.3)":  "lognormal(120ms,0.3)",
		"uniform(50ms,200ms)":   "uniform(50ms,200ms)",
	} {
		l, err := modelserver.ParseLatency(in)
		require.NoError(t, err, in)
		require.Equal(t, want, l.String())
		var back modelserver.Latency
		require.NoError(t, back.Set(l.String()))
		require.Equal(t, l, back)
	}
}

func TestALatencyThatCannotBeIsRefused(t *testing.T) {
	for _, in := range []string{"fast", "-1s", "normal(1s)", "normal(1s,2s", "normal(1s,x)", "uniform(2s,1s)",
		"lognormal(1s,1s)", "lognormal(1s,-1)", "lognormal(1s,NaN)", "gamma(1s,2s)", "(1s,2s)", "normal(-1s,1s)"} {
		_, err := modelserver.ParseLatency(in)
		require.Error(t, err, in)
	}
}

func TestSamplesFollowTheDistribution(t *testing.T) {
	const ms = time.Millisecond
	for in, want := range map[string]struct{ low, median, high time.Duration }{
		"120ms":               {120 * ms, 120 * ms, 120 * ms},
		"normal(120ms,20ms)":  {20 * ms, 120 * ms, 220 * ms},
		"normal(1ms,50ms)":    {0, 1 * ms, 300 * ms},
		"lognormal(120ms,.3)": {25 * ms, 120 * ms, 600 * ms},
		"uniform(50ms,200ms)": {50 * ms, 125 * ms, 200 * ms},
	} {
		l, err := modelserver.ParseLatency(in)
		require.NoError(t, err)
		r, all := rand.New(rand.NewPCG(1, 2)), make([]time.Duration, 4001)
		for i := range all {
			all[i] = l.Sample(r)
		}
		slices.Sort(all)
		require.GreaterOrEqual(t, all[0], want.low, in)
		require.LessOrEqual(t, all[len(all)-1], want.high, in)
		require.InDelta(t, want.median, all[2000], float64(5*ms), in)
	}
}

func FuzzParseLatency(f *testing.F) {
	f.Add("normal(120ms,20ms)")
	f.Add("lognormal(1h,10)")
	f.Fuzz(func(t *testing.T, in string) {
		l, err := modelserver.ParseLatency(in)
		if err != nil {
			return
		}
		if l.Sample(rand.New(rand.NewPCG(1, 1))) < 0 {
			t.Fatalf("%q gave a negative latency", in)
		}
		if back, err := modelserver.ParseLatency(l.String()); err != nil || back != l {
			t.Fatalf("%q reads back as %v, %v", in, back, err)
		}
	})
}
