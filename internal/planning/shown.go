package planning

import (
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// What a plan shows of a rollout, in one shape at every door: the names are those of the
// provider's schema and of docs/schemas/rollout.schema.json. Pointers are null where the
// thing is not known to the engine or not given.

// ShownVersion is the version of the shape of facts, journey and findings. A change that
// takes something away, or gives it another meaning, raises it; one that adds something
// does not.
const ShownVersion = 1

// ShownStep is one step of a journey. Times are in seconds.
type ShownStep struct {
	Step           int64   `json:"step" tfsdk:"step"` // 1-based
	TrafficPercent int64   `json:"traffic_percent" tfsdk:"traffic_percent"`
	DeltaPercent   int64   `json:"delta_percent" tfsdk:"delta_percent"`
	TargetReplicas *int64  `json:"target_replicas" tfsdk:"target_replicas"`
	SourceReplicas *int64  `json:"source_replicas" tfsdk:"source_replicas"`
	ScaleUp        *int64  `json:"scale_up" tfsdk:"scale_up"`
	WaitAsked      float64 `json:"wait_asked_seconds" tfsdk:"wait_asked_seconds"`
	Wait           float64 `json:"wait_seconds" tfsdk:"wait_seconds"`
	WaitReason     *string `json:"wait_reason" tfsdk:"wait_reason"` // where it is new
	StartsAt       float64 `json:"starts_at_seconds" tfsdk:"starts_at_seconds"`
	Least          float64 `json:"least_seconds" tfsdk:"least_seconds"`
	Gated          bool    `json:"gated" tfsdk:"gated"`
}

// ShownFacts are the flat facts of a journey.
type ShownFacts struct {
	SchemaVersion     int64    `json:"schema_version" tfsdk:"schema_version"`
	Strategy          string   `json:"strategy" tfsdk:"strategy"`
	StepCount         *int64   `json:"step_count" tfsdk:"step_count"`
	FirstStepPercent  int64    `json:"first_step_percent" tfsdk:"first_step_percent"`
	MaxStepDelta      int64    `json:"max_step_delta_percent" tfsdk:"max_step_delta_percent"`
	UngatedPercent    int64    `json:"ungated_percent" tfsdk:"ungated_percent"`
	GateCount         int64    `json:"gate_count" tfsdk:"gate_count"`
	HasGate           bool     `json:"has_gate" tfsdk:"has_gate"`
	WaitAsked         float64  `json:"wait_asked_seconds" tfsdk:"wait_asked_seconds"`
	Wait              float64  `json:"wait_seconds" tfsdk:"wait_seconds"`
	ExpectedDuration  *float64 `json:"expected_duration_seconds" tfsdk:"expected_duration_seconds"`
	LeastDuration     float64  `json:"least_duration_seconds" tfsdk:"least_duration_seconds"`
	WaitLimit         float64  `json:"wait_limit_seconds" tfsdk:"wait_limit_seconds"`
	FinalSource       int64    `json:"final_source_replicas" tfsdk:"final_source_replicas"`
	FinalTarget       *int64   `json:"final_target_replicas" tfsdk:"final_target_replicas"`
	LargestScaleUp    *int64   `json:"largest_scale_up" tfsdk:"largest_scale_up"`
	LongestWindow     float64  `json:"longest_window_seconds" tfsdk:"longest_window_seconds"`
	RequestsPerSecond float64  `json:"requests_per_second_needed" tfsdk:"requests_per_second_needed"`
	HoldsSource       bool     `json:"holds_source" tfsdk:"holds_source"`
	BreakerRules      int64    `json:"circuit_breaker_rules" tfsdk:"circuit_breaker_rules"`
	BreakerSignedBy   *string  `json:"circuit_breaker_signed_by" tfsdk:"circuit_breaker_signed_by"`
}

// ShownFinding is a finding about a subject in the words of HCL.
type ShownFinding struct {
	Code     string `json:"code" tfsdk:"code"`
	Severity string `json:"severity" tfsdk:"severity"`
	Subject  string `json:"subject" tfsdk:"subject"`
	Message  string `json:"message" tfsdk:"message"`
	Remedy   string `json:"remedy" tfsdk:"remedy"`
}

// ShownSteps is the way, step by step. A wait's reason stands where it is new: all steps
// of a journey mostly share one, and a reviewer reads it once.
func ShownSteps(j Journey) []ShownStep {
	steps, said := make([]ShownStep, 0, len(j.Steps)), ""
	for _, st := range j.Steps {
		var reason *string
		if st.WaitReason != said {
			said, reason = st.WaitReason, ptr(st.WaitReason)
		}
		steps = append(steps, ShownStep{
			Step: int64(st.Number), TrafficPercent: int64(st.TrafficPercent), DeltaPercent: int64(st.DeltaPercent),
			TargetReplicas: long(st.TargetReplicas), SourceReplicas: long(st.SourceReplicas), ScaleUp: long(st.ScaleUp),
			WaitAsked: st.AskedWait.Seconds(), Wait: st.Wait.Seconds(), WaitReason: reason,
			StartsAt: st.StartsAt.Seconds(), Least: st.Least.Seconds(), Gated: st.Gated,
		})
	}
	return steps
}

// FactsOf are the flat facts of a journey.
func FactsOf(j Journey) ShownFacts {
	t := j.Totals
	needed, window, asked := 0.0, time.Duration(0), time.Duration(0)
	for _, g := range j.Gates {
		needed, window = max(needed, g.RequestsPerSecond), max(window, g.Window)
	}
	if len(j.Steps) > 0 {
		asked = j.Steps[0].AskedWait
	}
	return ShownFacts{
		SchemaVersion: ShownVersion, Strategy: string(j.Strategy), StepCount: long(t.StepCount),
		FirstStepPercent: int64(t.FirstStepPercent), MaxStepDelta: int64(t.MaxStepDelta), UngatedPercent: int64(t.UngatedPercent),
		GateCount: int64(t.GateCount), HasGate: t.GateCount > 0,
		WaitAsked: asked.Seconds(), Wait: t.Soak.Seconds(), LeastDuration: t.LeastDuration.Seconds(), WaitLimit: t.WaitLimit.Seconds(),
		FinalSource: int64(t.FinalSourceReplicas), FinalTarget: long(t.FinalTargetReplicas), LargestScaleUp: long(t.LargestScaleUp),
		LongestWindow: window.Seconds(), RequestsPerSecond: math.Ceil(needed*1000-1e-6) / 1000,
		HoldsSource: t.HoldsSource, BreakerRules: int64(len(j.Breaker)), BreakerSignedBy: orNil(t.BreakerSignedBy),
	}
}

// ShownFindings are the findings of a journey.
func ShownFindings(j Journey) []ShownFinding {
	found := make([]ShownFinding, 0, len(j.Findings))
	for _, f := range j.Findings {
		found = append(found, f.Shown(subjectOf(j, f)))
	}
	return found
}

// Shown is the finding about a subject in the words of HCL.
func (f Finding) Shown(subject string) ShownFinding {
	return ShownFinding{Code: string(f.Code), Severity: string(f.Severity), Subject: subject, Message: f.Message, Remedy: f.Remedy}
}

// subjectOf is a finding's place in the words of HCL.
func subjectOf(j Journey, f Finding) string {
	if f.Subject == "strategy" && j.Strategy == "BLUE_GREEN" {
		return "blue_green"
	}
	return snake(strings.TrimPrefix(f.Subject, "sluice."))
}

// ShownCondition is why a rollout is parked.
type ShownCondition struct {
	Category   string     `json:"category" tfsdk:"category"`
	Message    string     `json:"message" tfsdk:"message"`
	AtStep     int64      `json:"at_step" tfsdk:"at_step"` // 1-based
	ObservedAt string     `json:"observed_at" tfsdk:"observed_at"`
	Metrics    []ShownRow `json:"metrics" tfsdk:"metrics"`
}

// ShownRow is one rule with what was measured.
type ShownRow struct {
	Name          string   `json:"name" tfsdk:"name"`
	Percentile    *int64   `json:"percentile" tfsdk:"percentile"`
	Verdict       *string  `json:"verdict" tfsdk:"verdict"`
	Check         *string  `json:"check" tfsdk:"check"`
	TargetValue   *float64 `json:"target_value" tfsdk:"target_value"`
	SourceValue   *float64 `json:"source_value" tfsdk:"source_value"`
	Regression    *float64 `json:"regression_percent" tfsdk:"regression_percent"`
	MaxRegression *float64 `json:"max_regression_percent" tfsdk:"max_regression_percent"`
	Threshold     *float64 `json:"threshold" tfsdk:"threshold"`
	TargetSamples *int64   `json:"target_samples" tfsdk:"target_samples"`
	SourceSamples *int64   `json:"source_samples" tfsdk:"source_samples"`
	SamplesNeeded *int64   `json:"samples_needed" tfsdk:"samples_needed"`
}

// ConditionOf is a condition as it is shown; nil for none.
func ConditionOf(c *api.Condition) *ShownCondition {
	if c == nil {
		return nil
	}
	out := &ShownCondition{
		Category: strings.TrimPrefix(c.Category, api.PrefixCategory), Message: c.Message, AtStep: int64(c.AtStep) + 1,
		ObservedAt: c.ObservedAt.UTC().Format(time.RFC3339Nano), Metrics: make([]ShownRow, 0, len(c.Metrics)),
	}
	for _, row := range c.Metrics {
		out.Metrics = append(out.Metrics, rowOf(row))
	}
	return out
}

func rowOf(row api.MetricRow) ShownRow {
	out := ShownRow{
		Name: row.Name, Percentile: long(row.Percentile), TargetValue: row.TargetValue, SourceValue: row.SourceValue,
		Verdict: orNil(strings.TrimPrefix(row.Verdict, api.PrefixVerdict)), Check: orNil(strings.TrimPrefix(row.Check, api.PrefixCheck)),
		MaxRegression: row.MaxRegressionPercent, Threshold: row.Threshold,
	}
	if x := row.Sluice; x != nil {
		out.Regression = x.RegressionPercent
		out.TargetSamples, out.SourceSamples, out.SamplesNeeded = ptr(int64(x.TargetSamples)), ptr(int64(x.SourceSamples)), ptr(int64(x.SamplesNeeded))
	}
	return out
}

// ShownInEffect is what an engine made of a spec.
type ShownInEffect struct {
	Wait        *float64 `json:"wait_seconds" tfsdk:"wait_seconds"`
	Seed        int64    `json:"seed_percent" tfsdk:"seed_percent"`
	FinalSource int64    `json:"final_source_replicas" tfsdk:"final_source_replicas"`
	FinalTarget int64    `json:"final_target_replicas" tfsdk:"final_target_replicas"`
	StepCount   int64    `json:"step_count" tfsdk:"step_count"`
}

// InEffectOf is what an engine made of a rollout's spec; nil where it does not tell.
func InEffectOf(r api.Rollout) *ShownInEffect {
	x := r.Sluice
	if x == nil {
		return nil
	}
	out := &ShownInEffect{Seed: int64(x.SeedPercent), FinalSource: int64(x.FinalSource), FinalTarget: int64(x.FinalTarget), StepCount: int64(r.Status.TotalSteps)}
	if x.Soak != nil {
		out.Wait = ptr(time.Duration(*x.Soak).Seconds())
	}
	return out
}

// ShownDrift is what a person changed under a rollout that is not over.
type ShownDrift struct {
	Detected   bool    `json:"detected" tfsdk:"detected"`
	Kind       *string `json:"kind" tfsdk:"kind"`
	Set        *int64  `json:"set_percent" tfsdk:"set_percent"`
	Actual     *int64  `json:"actual_percent" tfsdk:"actual_percent"`
	By         *string `json:"by" tfsdk:"by"`
	Reason     *string `json:"reason" tfsdk:"reason"`
	At         *string `json:"at" tfsdk:"at"`
	Event      *string `json:"event_id" tfsdk:"event_id"`
	Deployment *string `json:"deployment_id" tfsdk:"deployment_id"`
	Kept       *string `json:"kept" tfsdk:"kept"`
}

// DriftBreakGlass is the kind of drift of a person who broke the lock of the split.
const DriftBreakGlass = "break_glass"

// DriftTold is the drift that a rollout tells by itself. A finished one has none.
func DriftTold(r api.Rollout) ShownDrift {
	if r.Sluice == nil || r.Sluice.Drift == nil || IsOver(r.State) {
		return ShownDrift{}
	}
	d := r.Sluice.Drift
	return ShownDrift{
		Detected: true, Kind: ptr(DriftBreakGlass), Set: long(&d.SetPercent), Actual: long(&d.ActualPercent),
		By: orNil(d.By), Reason: orNil(d.Reason), At: ptr(d.At.UTC().Format(time.RFC3339)),
	}
}

func long(v *int) *int64 {
	if v == nil {
		return nil
	}
	return ptr(int64(*v))
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// snake turns camelCase to snake_case.
func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
