package provider

import (
	"math"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// The plan of a rollout as typed attributes, one shape for people and policies.
var (
	journeyType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"step": types.Int64Type, "traffic_percent": types.Int64Type, "delta_percent": types.Int64Type,
		"target_replicas": types.Int64Type, "source_replicas": types.Int64Type, "scale_up": types.Int64Type,
		"wait_asked_seconds": types.Float64Type, "wait_seconds": types.Float64Type, "wait_reason": types.StringType,
		"starts_at_seconds": types.Float64Type, "least_seconds": types.Float64Type, "gated": types.BoolType,
	}}
	factsType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"schema_version": types.Int64Type, "strategy": types.StringType, "step_count": types.Int64Type, "first_step_percent": types.Int64Type,
		"max_step_delta_percent": types.Int64Type, "ungated_percent": types.Int64Type, "gate_count": types.Int64Type,
		"has_gate": types.BoolType, "wait_asked_seconds": types.Float64Type, "wait_seconds": types.Float64Type, "expected_duration_seconds": types.Float64Type, "least_duration_seconds": types.Float64Type, "wait_limit_seconds": types.Float64Type,
		"final_source_replicas": types.Int64Type, "final_target_replicas": types.Int64Type,
		"largest_scale_up": types.Int64Type, "longest_window_seconds": types.Float64Type, "requests_per_second_needed": types.Float64Type,
		"holds_source": types.BoolType, "circuit_breaker_rules": types.Int64Type, "circuit_breaker_signed_by": types.StringType,
	}}
	findingType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"code": types.StringType, "severity": types.StringType, "subject": types.StringType,
		"message": types.StringType, "remedy": types.StringType,
	}}
)

// planSchemaVersion is the version of the shape of facts, journey and findings, whose
// JSON schemas stand in docs/schemas. A change that takes something away, or gives it
// another meaning, raises it; one that adds something does not.
const planSchemaVersion = 1

func seconds(d time.Duration) types.Float64 { return types.Float64Value(d.Seconds()) }

// journeyValue is the way, step by step. A wait's reason stands where it is new: all
// steps of a journey mostly share one, and a reviewer reads it once.
func journeyValue(j planning.Journey) types.List {
	steps, said := make([]attr.Value, 0, len(j.Steps)), ""
	for _, st := range j.Steps {
		reason := types.StringNull()
		if st.WaitReason != said {
			said, reason = st.WaitReason, types.StringValue(st.WaitReason)
		}
		steps = append(steps, types.ObjectValueMust(journeyType.AttrTypes, map[string]attr.Value{
			"step": types.Int64Value(int64(st.Number)), "traffic_percent": types.Int64Value(int64(st.TrafficPercent)),
			"delta_percent": types.Int64Value(int64(st.DeltaPercent)), "target_replicas": optionalInt(st.TargetReplicas),
			"source_replicas": optionalInt(st.SourceReplicas), "scale_up": optionalInt(st.ScaleUp),
			"wait_asked_seconds": seconds(st.AskedWait), "wait_seconds": seconds(st.Wait), "wait_reason": reason,
			"starts_at_seconds": seconds(st.StartsAt), "least_seconds": seconds(st.Least), "gated": types.BoolValue(st.Gated),
		}))
	}
	return types.ListValueMust(journeyType, steps)
}

func factsValue(j planning.Journey) types.Object {
	t := j.Totals
	needed, window := 0.0, time.Duration(0)
	for _, g := range j.Gates {
		needed, window = max(needed, g.RequestsPerSecond), max(window, g.Window)
	}
	asked := time.Duration(0)
	if len(j.Steps) > 0 {
		asked = j.Steps[0].AskedWait
	}
	return types.ObjectValueMust(factsType.AttrTypes, map[string]attr.Value{
		"schema_version": types.Int64Value(planSchemaVersion), "wait_asked_seconds": seconds(asked), "expected_duration_seconds": types.Float64Null(),
		"strategy": types.StringValue(string(j.Strategy)), "step_count": optionalInt(t.StepCount),
		"first_step_percent":     types.Int64Value(int64(t.FirstStepPercent)),
		"max_step_delta_percent": types.Int64Value(int64(t.MaxStepDelta)), "ungated_percent": types.Int64Value(int64(t.UngatedPercent)),
		"gate_count": types.Int64Value(int64(t.GateCount)), "has_gate": types.BoolValue(t.GateCount > 0),
		"wait_seconds": seconds(t.Soak), "least_duration_seconds": seconds(t.LeastDuration), "wait_limit_seconds": seconds(t.WaitLimit),
		"final_source_replicas": types.Int64Value(int64(t.FinalSourceReplicas)), "final_target_replicas": optionalInt(t.FinalTargetReplicas),
		"largest_scale_up": optionalInt(t.LargestScaleUp), "longest_window_seconds": seconds(window), "requests_per_second_needed": types.Float64Value(math.Ceil(needed*1000-1e-6) / 1000),
		"holds_source": types.BoolValue(t.HoldsSource), "circuit_breaker_rules": types.Int64Value(int64(len(j.Breaker))), "circuit_breaker_signed_by": optionalString(t.BreakerSignedBy),
	})
}

func findingsValue(j planning.Journey) types.List {
	found := make([]attr.Value, 0, len(j.Findings))
	for _, f := range j.Findings {
		found = append(found, findingValue(f, findingSubject(j, f)))
	}
	return types.ListValueMust(findingType, found)
}

// findingValue is a finding about a subject in the words of HCL.
func findingValue(f planning.Finding, subject string) attr.Value {
	return types.ObjectValueMust(findingType.AttrTypes, map[string]attr.Value{
		"code": types.StringValue(string(f.Code)), "severity": types.StringValue(string(f.Severity)), "subject": types.StringValue(subject),
		"message": types.StringValue(f.Message), "remedy": types.StringValue(f.Remedy),
	})
}

// findingSubject is a finding's place in the words of HCL.
func findingSubject(j planning.Journey, f planning.Finding) string {
	if f.Subject == "strategy" && j.Strategy == "BLUE_GREEN" {
		return "blue_green"
	}
	return subject(f.Subject)
}
