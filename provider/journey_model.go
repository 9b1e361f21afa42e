package provider

import (
	"context"
	"fmt"
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
// JSON schemas stand in docs/schemas.
const planSchemaVersion = planning.ShownVersion

func seconds(d time.Duration) types.Float64 { return types.Float64Value(d.Seconds()) }

// objectFrom makes an object of a struct whose fields are tagged with the attributes'
// names. The shapes are the planner's, so that every door shows the same. Nothing cancels a
// conversion of plain values.
//
//nolint:contextcheck // see above
func objectFrom(t types.ObjectType, v any) types.Object {
	o, diags := types.ObjectValueFrom(context.Background(), t.AttrTypes, v)
	if diags.HasError() {
		panic(fmt.Sprintf("%T has the attributes of its type: %v", v, diags))
	}
	return o
}

func listFrom[T any](t types.ObjectType, items []T) types.List {
	values := make([]attr.Value, 0, len(items))
	for _, item := range items {
		values = append(values, objectFrom(t, item))
	}
	return types.ListValueMust(t, values)
}

func journeyValue(j planning.Journey) types.List {
	return listFrom(journeyType, planning.ShownSteps(j))
}

func factsValue(j planning.Journey) types.Object { return objectFrom(factsType, planning.FactsOf(j)) }

func findingsValue(j planning.Journey) types.List {
	return listFrom(findingType, planning.ShownFindings(j))
}

// findingValue is a finding about a subject in the words of HCL.
func findingValue(f planning.Finding, subject string) attr.Value {
	return objectFrom(findingType, f.Shown(subject))
}
