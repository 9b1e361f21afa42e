package rollout_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func fieldsOf(ps []Problem) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Field)
	}
	return strings.Join(out, ",")
}

// A caller with one digit too many, or a hostile one, is refused before any ladder is
// made of the number.
func TestHugeCountsAreRefused(t *testing.T) {
	for _, n := range []int{MaxReplicas + 1, 1 << 40, 1 << 62} {
		s := Spec{Source: "a", Target: "b", Strategy: Rolling, FinalTarget: &n}
		require.Equal(t, "finalTargetReplicas", fieldsOf(s.Validate(DefaultTimings())))
		s = Spec{Source: "a", Target: "b", Strategy: Canary, Steps: []StepSpec{{Percent: 100, Replicas: &n}}}
		require.Equal(t, "canary.steps[0].replicas", fieldsOf(s.Validate(DefaultTimings())))
	}
	most := MaxReplicas
	require.Empty(t, Spec{Source: "a", Target: "b", Strategy: Canary, FinalTarget: &most}.Validate(DefaultTimings()))
	j, ps := NewJourney(Spec{Source: "a", Target: "b", Strategy: Rolling, FinalTarget: &most}, Basis{SourceReplicas: 1}, DefaultTimings())
	require.Equal(t, "finalTargetReplicas", fieldsOf(ps))
	require.Empty(t, j.Rungs)
	many := Spec{Source: "a", Target: "b", Strategy: Canary, Rules: make([]Rule, MaxRules+1)}
	require.Contains(t, fieldsOf(many.Validate(DefaultTimings())), "metrics")
}

// A model that answers its probe and no request must not pass as an idle endpoint.
func TestATargetThatHangsEveryRequestIsUnavailableNotIdle(t *testing.T) {
	rule := Rule{Metric: RouterErrorRate, Threshold: &Threshold{Operator: LT, Value: 0.05}}
	hangs := Reading{Touched: true, Complete: true}
	row := Judge(rule, Reading{Complete: true}, hangs)
	require.Equal(t, VerdictUnavailable, row.Verdict)
	require.Contains(t, row.Reason, "insufficient samples (0 < 1)")
}
