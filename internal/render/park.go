package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Way is one thing that a person can do about a parked rollout.
type Way struct {
	Command string
	Effect  string
}

// Park is what a person must know about a parked rollout.
type Park struct {
	Category  string // for example METRIC_REGRESSION; PAUSED for a person's own pause
	Message   string
	InGate    bool   // the gate's rows say the message
	Why       string // what the message means, where it does not say so itself
	Retry     string // that the engine tries again by itself, and until when; else empty
	Untouched string // what still stands
	Ways      []Way
}

// byHand is the category of a pause that a person asked for.
const byHand = "PAUSED"

// ByHand tells a person's own pause from a park of the engine.
func (p Park) ByHand() bool { return p.Category == byHand }

// ParkOf reads a parked rollout. For one that is not parked, Category is empty.
func ParkOf(r api.Rollout, o Options) Park {
	state := strings.TrimPrefix(r.State, api.PrefixRolloutState)
	if state != "PAUSED" && state != "SYSTEM_PAUSED" {
		return Park{}
	}
	p := Park{Category: byHand}
	if c := r.Status.Condition; c != nil {
		p.Category = Inert(strings.TrimPrefix(c.Category, api.PrefixCategory))
		p.Message, p.InGate = readable(c.Message, currentRows(r))
	} else if r.PauseInfo != nil {
		p.Message = Inert(r.PauseInfo.Reason)
	}
	percent := percentOf(r)
	split := fmt.Sprintf("%d/%d", 100-percent, percent)
	p.Untouched = fmt.Sprintf("the split stays at %s (source/target), %s, no replica is stopped", split, serving(percent))
	if p.Category == "METRICS_UNAVAILABLE" {
		p.Why = "A gate has no verdict while its window holds too few requests, or a gap: time in which the engine did not measure, as across its restart."
	}
	p.Retry = retry(r)
	p.Ways = []Way{
		{o.command(Resume, r.EndpointID, r.ID), resumeEffect(p.Category)},
		{o.command(Promote, r.EndpointID, r.ID), promoteEffect(r)},
		{o.command(Cancel, r.EndpointID, r.ID), cancelEffect(percent, split)},
	}
	return p
}

// readable is a park's message for people: a breach in the wire's words becomes the
// gate's row in ours. whole is true when nothing else was in the message.
func readable(message string, rows []api.MetricRow) (text string, whole bool) {
	for _, row := range rows {
		if row.FailureReason == "" || !strings.Contains(message, row.FailureReason) {
			continue
		}
		cells := []string{metricName(row), measured(row), judged(row), samples(row)}
		cells = slices.DeleteFunc(cells, func(s string) bool { return s == "" })
		return Inert(strings.Replace(message, row.FailureReason, strings.Join(cells, " "), 1)), message == row.FailureReason
	}
	return Inert(message), false
}

// serving says who answers at a split.
func serving(percent int) string {
	switch percent {
	case 0:
		return "the source keeps serving, the target has no traffic"
	case 100:
		return "the target keeps serving, the source has no traffic"
	}
	return "both sides keep serving"
}

// retry tells that a park may end by itself.
func retry(r api.Rollout) string {
	x := r.Sluice
	if x == nil || x.RetryAt == nil {
		return ""
	}
	text := "The engine tries again by itself at " + x.RetryAt.UTC().Format(time.RFC3339)
	if x.RetryUntil != nil {
		text += ", and gives up at " + x.RetryUntil.UTC().Format(time.RFC3339)
	}
	return text + "."
}

func resumeEffect(category string) string {
	switch category {
	case "METRIC_REGRESSION", "METRICS_UNAVAILABLE":
		return "judges the gate of this step again on fresh data; never skips it"
	case byHand:
		return "goes on at the same step and split"
	}
	return "tries this step again from its first check"
}

func promoteEffect(r api.Rollout) string {
	effect := "skips to the last step and runs it in full, its wait included"
	if comparesSides(r) {
		effect += "; a regression gate then has no source traffic to compare with"
	}
	return effect
}

// comparesSides reports whether a gate compares the target with the source.
func comparesSides(r api.Rollout) bool {
	if x := r.Sluice; x != nil && x.Spec != nil {
		for _, m := range x.Spec.Metrics {
			if m.RegressionCheck != nil {
				return true
			}
		}
	}
	for _, row := range currentRows(r) {
		if row.MaxRegressionPercent != nil {
			return true
		}
	}
	return false
}

func cancelEffect(percent int, split string) string {
	if percent == 0 {
		return "keeps " + split + ", scales nothing; a target that is broken is then stopped by hand"
	}
	return fmt.Sprintf("freezes %s at once, scales nothing; a reverse rollout then goes back", split)
}

// AfterCancel are the usual next things after a cancel, which itself scales nothing:
// a target without traffic runs on (and a broken one restarts for ever) until it is
// stopped; with traffic on it, a reverse rollout goes back. Nil for other rollouts.
func AfterCancel(r api.Rollout) []Way {
	if strings.TrimPrefix(r.State, api.PrefixRolloutState) != "CANCELED" {
		return nil
	}
	source, target := Inert(r.SourceDeploymentID), Inert(r.TargetDeploymentID)
	percent := percentOf(r)
	if percent == 0 {
		return []Way{{"sluice update " + target + " --min-replicas 0 --max-replicas 0", "stops the target, which has no traffic and still runs"}}
	}
	return []Way{{"sluice rollout " + source + " --source " + target + " --blue-green", backEffect(percent)}}
}

// backEffect is what a reverse rollout does.
func backEffect(percent int) string {
	return fmt.Sprintf("goes back: moves the target's %d%% to the source again", percent)
}

func percentOf(r api.Rollout) int {
	if r.CurrentTrafficPercent == nil {
		return 0
	}
	return *r.CurrentTrafficPercent
}

// Text is a park in a few lines without colour, for diagnostics.
func (p Park) Text() string {
	var b strings.Builder
	for _, text := range []string{p.Message, p.Why, p.Retry} {
		if text != "" {
			b.WriteString(text + "\n\n")
		}
	}
	b.WriteString("Not touched: " + p.Untouched + ".\n\nThree ways on:\n")
	for _, w := range p.Ways {
		b.WriteString("  " + w.Command + "\n      " + w.Effect + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
