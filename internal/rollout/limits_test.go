package rollout_test

import (
	"strings"
	"testing"
	"time"

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

// What a door notes beside the spec is written with every version of the record, so a
// megabyte of it would be written at every phase; a ladder has no more rungs than percents.
func TestHugeNotesAndLaddersAreRefused(t *testing.T) {
	s := Spec{Source: "a", Target: "b", Strategy: Canary, Steps: make([]StepSpec, MaxSteps+1)}
	require.Equal(t, "canary.steps", fieldsOf(s.Validate(DefaultTimings())))
	s = Spec{Source: "a", Target: "b", Strategy: BlueGreen, Digest: strings.Repeat("d", MaxDigest+1), Origin: strings.Repeat("ö", MaxOrigin+1)}
	require.Equal(t, "sluice.digest,sluice.origin", fieldsOf(s.Validate(DefaultTimings())))
	s.Digest, s.Origin = s.Digest[1:], strings.Repeat("ö", MaxOrigin)
	require.Empty(t, s.Validate(DefaultTimings()))
}

// Somebody who breaks the glass over a rollout that is being canceled reads why not.
func TestGlassThatCannotBeBrokenIsToldInWords(t *testing.T) {
	_, _, err := Rollout{ID: "rol_1", State: Cancelling}.BreakGlass("ann", "why", 10, 50, time.Time{})
	require.EqualError(t, err, "cannot break the glass over rollout rol_1: it is CANCELLING; wait until it is CANCELED")
}

// A model that answers its probe and no request must not pass as an idle endpoint.
func TestATargetThatHangsEveryRequestIsUnavailableNotIdle(t *testing.T) {
	rule := Rule{Metric: RouterErrorRate, Threshold: &Threshold{Operator: LT, Value: 0.05}}
	hangs := Reading{Touched: true, Complete: true}
	row := Judge(rule, Reading{Complete: true}, hangs)
	require.Equal(t, VerdictUnavailable, row.Verdict)
	require.Contains(t, row.Reason, "insufficient samples (0 < 1)")
}
