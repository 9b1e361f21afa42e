package rehearsal

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// journeys are whole rollouts, one of each strategy, and what may end them.
func journeys() map[string]Script {
	given := func(spec ...string) []string {
		return append([]string{
			"source: 3 ready; cold start 60s; drain 5s", "target: stopped; cold start 120s", "other: 1 ready",
			"measure: router_latency source 700", "measure: router_latency target 710",
		}, spec...)
	}
	gate := "gate: router_latency p95 regression 25 higher; window 60s"
	return map[string]Script{
		"canary completes":     {Given: given("rollout: canary 10 50 100", gate), When: []string{"+0:00 start"}},
		"blue-green completes": {Given: given("rollout: blue-green"), When: []string{"+0:00 start"}},
		"rolling completes":    {Given: given("rollout: rolling"), When: []string{"+0:00 start"}},
		"canary is canceled":   {Given: given("rollout: canary 10 50 100", gate), When: []string{"+0:00 start", "in SOAKING of step 2 after 10s: cancel \"enough\""}},
		"canary is promoted":   {Given: given("rollout: canary 10 50 100", gate), When: []string{"+0:00 start", "in SOAKING of step 1 after 10s: promote"}},
		"canary parks and is resumed": {
			Given: given("rollout: canary 50 100", gate),
			When:  []string{"+0:00 start", "in SOAKING of step 1 after 10s: measure router_latency target 1740", "+1:00:00 measure router_latency target 700", "+2:00:00 resume"},
		},
		"blue-green is paused": {Given: given("rollout: blue-green"), When: []string{"+0:00 start", "in PROPAGATING of step 1 after 10s: pause \"a look\"", "+1:00:00 resume"}},
		"frozen pair goes on": {
			Given: []string{"source: 3 ready; drain 5s", "target: 2 ready", "split: 40", "rollout: canary"}, When: []string{"+0:00 start"},
		},
		"a step makes its own room": {
			Given: []string{"source: 4 ready; drain 5s", "target: stopped; cold start 2m", "free: 4 shared", "rollout: canary 25 100"},
			When:  []string{"+0:00 start", "in SOAKING of step 1: free 1 shared"},
		},
		"a held source is drained last": {Given: given("rollout: canary 50 100; hold source", gate), When: []string{"+0:00 start"}},
		"a breaker trips and is resumed": {
			Given: given("rollout: canary 10 50 100; interval 10m", "breaker: router_error_rate threshold LT 0.05; window 60s"),
			When:  []string{"+0:00 start", "in SOAKING of step 2 after 1m: measure router_error_rate target 0.5", "+1:00:00 measure router_error_rate target 0.001", "+1:00:00 resume"},
		},
		"the glass is broken and put back": {
			Given: given("rollout: canary 50 100"),
			When:  []string{"+0:00 start", "in SOAKING of step 1 after 1m: break glass 75 \"a look\"", "+1:00:00 resume"},
		},
		"the billing lapses": {
			Given: given("rollout: canary 50 100"),
			When:  []string{"+0:00 start", "in SOAKING of step 1: lapse \"unpaid\"", "+0:10:00 mend billing"},
		},
	}
}

// An engine that dies at any outward call of a whole rollout, before it or after it took
// effect, and starts anew from what is stored, ends with the same record and the same
// feed at the same instants.
func TestACrashAtEveryOutwardCall(t *testing.T) {
	d := disk(t)
	crashes := 0
	for name, s := range journeys() {
		t.Run(name, func(t *testing.T) {
			for _, gateway := range []string{"outside", "in the engine"} {
				s := Script{Given: append([]string{"gateway: " + gateway}, s.Given...), When: s.When}
				want := wholeRollout(t, s, Setup{Disk: d})
				stride := 1
				if slowBuild {
					stride = 40
				}
				for at := 1; at <= want.Stats.Calls; at += stride {
					for _, kind := range []string{"before", "after"} {
						crashed := Script{Given: append([]string{fmt.Sprintf("at call %d: crash %s", at, kind)}, s.Given...), When: s.When}
						got := wholeRollout(t, crashed, Setup{Disk: d})
						crashes++
						requireSame(t, want, got, fmt.Sprintf("gateway %s: a crash %s call %d of %d", gateway, kind, at, want.Stats.Calls))
					}
				}
			}
		})
	}
	t.Logf("measured: %d whole rollouts, each with one crash at an outward call", crashes)
}

func wholeRollout(t *testing.T, s Script, setup Setup) Result {
	t.Helper()
	r, err := Play(t.Context(), s, setup)
	require.NoError(t, err)
	require.Empty(t, r.Violations, "%s", s)
	require.True(t, r.Record.State.Terminal(), "%s ends %s", s, r.Record.State)
	return r
}

// requireSame compares what a rollout left: its state and steps, its split, and its feed
// with every instant.
func requireSame(t *testing.T, want, got Result, when string) {
	t.Helper()
	require.Equal(t, feed(want), feed(got), when)
	a, b := want.Record, got.Record
	a.Version, b.Version = 0, 0 // a decision that was lost is made again
	a.Generation, b.Generation = 0, 0
	require.Equal(t, a, b, when)
	require.Equal(t, want.Lines[len(want.Lines)-1], got.Lines[len(got.Lines)-1], when)
}

func feed(r Result) []string {
	out := make([]string, 0, len(r.Events))
	for _, e := range r.Events {
		out = append(out, fmt.Sprint(clock(e.At), " ", e.Type, " ", e.Message, " ", e.Reason))
	}
	return out
}
