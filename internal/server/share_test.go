package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// counts are answers by deployment and generation.
type counts map[string]map[uint64]int64

func (c counts) Served(deployment string, minGeneration uint64) int64 {
	var n int64
	for generation, k := range c[deployment] {
		if generation >= minGeneration {
			n += k
		}
	}
	return n
}

func TestTheServedShareIsOfTheSplitThatIsServedNow(t *testing.T) {
	r := rollout.Rollout{Generation: 7, Spec: rollout.Spec{Source: "a", Target: "b"}}
	for name, c := range map[string]struct {
		counts counts
		share  float64
		ok     bool
	}{
		"the traffic of the split before is left out": {counts{"a": {3: 900, 7: 80}, "b": {3: 700, 7: 10, 8: 10}}, 0.2, true},
		"too few to tell":  {counts{"a": {7: 14}, "b": {7: 5}}, 0, false},
		"just enough":      {counts{"a": {7: 15}, "b": {7: 5}}, 0.25, true},
		"nothing arrived":  {counts{}, 0, false},
		"none of many":     {counts{"a": {7: 100}}, 0, true},
		"all on the other": {counts{"b": {7: 100}}, 1, true},
	} {
		s := &Server{Config: Config{Shares: c.counts}}
		share, ok := s.actualShare(r)
		require.Equal(t, c.ok, ok, name)
		require.InDelta(t, c.share, share, 1e-9, name)
	}
	r.Generation = 0
	_, ok := (&Server{Config: Config{Shares: counts{"a": {7: 100}}}}).actualShare(r)
	require.False(t, ok, "nothing was shifted yet")
	_, ok = (&Server{}).actualShare(rollout.Rollout{Generation: 1})
	require.False(t, ok)
}
