package planning

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// longLadder is the number of steps from which on a summary leaves out the middle.
const longLadder = 8

// Summary is a journey in one line, for example "canary 10 → 50 → 100 %, at least 21m,
// at most 10 % before the first gate, peak +1 replica". Like the journey it holds
// nothing that is not known.
func (j Journey) Summary() string {
	parts := []string{j.ladderText()}
	least := "at least " + Span(j.Totals.LeastDuration)
	if j.Totals.StepCount == nil {
		least += " a replica"
	}
	parts = append(parts, least)
	switch {
	case j.Totals.GateCount == 0:
		parts = append(parts, "no metric gate")
	case j.Totals.UngatedPercent == 100:
		parts = append(parts, "no gate can judge the first step")
	default:
		parts = append(parts, fmt.Sprintf("at most %d %% before the first gate", j.Totals.UngatedPercent))
	}
	if n := j.Totals.LargestScaleUp; n != nil {
		parts = append(parts, fmt.Sprintf("up to +%s at once", Count(*n, "replica")))
	}
	if j.Totals.HoldsSource {
		parts = append(parts, "source held in full")
	}
	return strings.Join(parts, ", ")
}

func (j Journey) ladderText() string {
	name := map[rollout.Strategy]string{rollout.Canary: "canary", rollout.BlueGreen: "blue-green", rollout.Rolling: "rolling"}[j.Strategy]
	if j.Strategy == rollout.Rolling && j.Totals.StepCount == nil {
		return name + ", one replica up and one down"
	}
	percents := make([]string, 0, len(j.Steps))
	for _, st := range j.Steps {
		percents = append(percents, strconv.Itoa(st.TrafficPercent))
	}
	if n := len(percents); n >= longLadder {
		percents = append(percents[:3:3], "…", percents[n-1])
		return fmt.Sprintf("%s %s %% in %d steps", name, strings.Join(percents, " → "), n)
	}
	return fmt.Sprintf("%s %s %%", name, strings.Join(percents, " → "))
}

// Count is a number of things for people: "1 replica", "2 replicas". The noun is one
// whose plural is an s more.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
