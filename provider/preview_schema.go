package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func previewAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"endpoint_id":          schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint whose traffic would move."},
		"source_deployment_id": schema.StringAttribute{Optional: true, Computed: true, MarkdownDescription: "As in `sluice_rollout`; inferred when left out."},
		"target_deployment_id": schema.StringAttribute{Required: true, MarkdownDescription: "Deployment that traffic would move to."},
		"canary": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`.", Attributes: map[string]schema.Attribute{
			"steps": schema.ListNestedAttribute{Optional: true, MarkdownDescription: "The ladder.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"traffic":  schema.NumberAttribute{CustomType: wholeNumber, Required: true, MarkdownDescription: "Percent of the pair on the target."},
				"replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "Target replicas of the step."},
			}}},
			"step_interval": schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "Wait of each step."},
		}},
		"blue_green": schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{}, MarkdownDescription: "As in `sluice_rollout`."},
		"rolling":    schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{}, MarkdownDescription: "As in `sluice_rollout`."},
		"metrics": schema.ListNestedAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name":       schema.StringAttribute{Required: true, MarkdownDescription: "Metric."},
			"stat":       schema.StringAttribute{Optional: true, CustomType: statType, MarkdownDescription: "`PERCENTILE` or `AVG`."},
			"percentile": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "1 to 99."},
			"window":     schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "How far back the gate looks."},
			"regression_check": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "Budget against the source.", Attributes: map[string]schema.Attribute{
				"direction":              schema.StringAttribute{Required: true, CustomType: directions, MarkdownDescription: "`HIGHER_IS_WORSE` or `LOWER_IS_WORSE`."},
				"max_regression_percent": schema.Float64Attribute{Optional: true, MarkdownDescription: "Budget in percent."},
			}},
			"threshold_check": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "Condition on the target.", Attributes: map[string]schema.Attribute{
				"operator": schema.StringAttribute{Required: true, CustomType: operators, MarkdownDescription: "`LT`, `LTE`, `GT` or `GTE`."},
				"value":    schema.Float64Attribute{Optional: true, MarkdownDescription: "In the metric's unit."},
			}},
		}}},
		"final_source_replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "As in `sluice_rollout`."},
		"final_target_replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "As in `sluice_rollout`."},

		"hold_source_until_complete": schema.BoolAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`."},
		"circuit_breaker": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "As in `sluice_rollout`.", Attributes: map[string]schema.Attribute{
			"signed_by": schema.StringAttribute{Required: true, MarkdownDescription: "Who answers for it."},
			"rules": schema.ListNestedAttribute{Required: true, MarkdownDescription: "Thresholds on the target.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"name":       schema.StringAttribute{Required: true, MarkdownDescription: "Metric."},
				"stat":       schema.StringAttribute{Optional: true, CustomType: statType, MarkdownDescription: "`PERCENTILE` or `AVG`."},
				"percentile": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "1 to 99."},
				"window":     schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "How far back a look goes."},
				"threshold_check": schema.SingleNestedAttribute{Required: true, MarkdownDescription: "Condition on the target.", Attributes: map[string]schema.Attribute{
					"operator": schema.StringAttribute{Required: true, CustomType: operators, MarkdownDescription: "`LT`, `LTE`, `GT` or `GTE`."},
					"value":    schema.Float64Attribute{Optional: true, MarkdownDescription: "In the metric's unit."},
				}},
			}}},
		}},

		"feasible":             schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the peak fits now; null when the engine does not tell, or would refuse the rollout as things stand (see `warnings`)."},
		"shortfall":            schema.StringAttribute{Computed: true, MarkdownDescription: "What is missing when it does not."},
		"source_replicas":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Source replicas now."},
		"target_replicas":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas now."},
		"landing_min_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Floor of the target at the end."},
		"landing_max_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Ceiling that the target is lifted to."},
		"peak_replicas":        schema.Int64Attribute{Computed: true, MarkdownDescription: "Most replicas of both sides at once."},
		"frozen_pair":          schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether both sides serve already, as after a cancel."},
		"seed_percent":         schema.Int64Attribute{Computed: true, MarkdownDescription: "The target's share of the pair now."},
		"journey": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "As in `sluice_rollout`, with the replica counts on what stands now.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"step":               schema.Int64Attribute{Computed: true, MarkdownDescription: "Number, from 1."},
			"traffic_percent":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the pair on the target."},
			"delta_percent":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent that moves."},
			"target_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas before traffic moves."},
			"source_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Source replicas after the drain."},
			"scale_up":           schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas that the step adds to what stands."},
			"wait_asked_seconds": schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait as asked."},
			"wait_seconds":       schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait in effect."},
			"wait_reason":        schema.StringAttribute{Computed: true, MarkdownDescription: "Why; null where it is that of the step before."},
			"starts_at_seconds":  schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time to this step."},
			"least_seconds":      schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time of the step."},
			"gated":              schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether a metric rule can judge it."},
			"peak_replicas":      givenInt("Most replicas of both sides at once in this step: the target's ready, the source not drained yet."),
			"peak_gpus":          givenInt("GPUs of those; null when a side's hardware is not listed."),
			"overlap_gpus":       givenInt("GPUs beyond those that stand now; null as above."),
			"expected_seconds":   givenFloat("Least time, and a cold start where the step starts replicas; null when the engine does not tell how long one takes."),
		}}},
		"facts": schema.ObjectAttribute{Computed: true, AttributeTypes: factsType.AttrTypes, MarkdownDescription: "Flat facts of the journey, as in `sluice_rollout`."},
		"findings": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "Remarks with stable codes.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"code":     schema.StringAttribute{Computed: true, MarkdownDescription: "Stable code."},
			"severity": schema.StringAttribute{Computed: true, MarkdownDescription: "`info` or `warning`."},
			"subject":  schema.StringAttribute{Computed: true, MarkdownDescription: "Attribute that it is about."},
			"message":  schema.StringAttribute{Computed: true, MarkdownDescription: "What."},
			"remedy":   schema.StringAttribute{Computed: true, MarkdownDescription: "How to mend it."},
		}}},
		"warnings": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The engine's own remarks. Codes are an open vocabulary.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"code":    schema.StringAttribute{Computed: true, MarkdownDescription: "For example `START_WILL_REJECT`."},
			"message": schema.StringAttribute{Computed: true, MarkdownDescription: "What."},
		}}},
		"hardware": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "The target's hardware; null when the engine does not list it.", Attributes: map[string]schema.Attribute{
			"id":                   schema.StringAttribute{Computed: true, MarkdownDescription: "Instance type."},
			"gpu_type":             schema.StringAttribute{Computed: true, MarkdownDescription: "GPU type."},
			"gpu_count":            schema.Int64Attribute{Computed: true, MarkdownDescription: "GPUs of one replica."},
			"price_cents_per_hour": schema.Int64Attribute{Computed: true, MarkdownDescription: "Price of one replica."},
			"headroom":             schema.Int64Attribute{Computed: true, MarkdownDescription: "Further replicas that fit; null when not known."},
			"headroom_is_exact":    schema.BoolAttribute{Computed: true, MarkdownDescription: "False when at least that many fit."},
		}},
		"source_hardware":     schema.ObjectAttribute{Computed: true, AttributeTypes: hardwareType.AttrTypes, MarkdownDescription: "The source's hardware, with the same attributes."},
		"peak_gpus":           givenInt("Most GPUs of both sides at once; null when a side's hardware is not listed."),
		"overlap_gpus":        givenInt("Most GPUs beyond those that stand now; null as above."),
		"overlap_gpu_hours":   givenFloat("Those GPUs over the expected time, step by step. An upper estimate: the source drains within a step. Null as above."),
		"overlap_cost_cents":  givenFloat("Price of what both sides hold beyond what stands now, over the expected time, each side at its hardware's price; null without a price."),
		"cold_start_seconds":  givenFloat("How long one start of the target's config may take; null when the engine does not tell."),
		"requests_per_second": givenFloat("Requests of the pair in the last minute, a second; null when the engine does not tell."),
		"gates": givenList("The metric rules beside the traffic that there is.", map[string]schema.Attribute{
			"metric":                   given("Metric, with its percentile."),
			"window_seconds":           givenFloat("Window in effect."),
			"samples_needed":           givenInt("Requests that each side which it reads needs in the window."),
			"samples_expected_at_step": schema.ListAttribute{Computed: true, ElementType: types.Float64Type, MarkdownDescription: "Requests to expect in the window at each step, of the side with the smaller share; null where the rule judges nothing, and throughout when the rate is not known."},
			"enough":                   schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether every step has them in 95 of 100 windows; null when the rate is not known."},
		}),
		"limits": givenList("What the journey asks of the autoscaler of each side, source first, beside the limits that are live.", map[string]schema.Attribute{
			"side":             given("`source` or `target`."),
			"deployment_id":    given("Deployment."),
			"asked_replicas":   givenInt("Most replicas that the journey asks of it."),
			"final_replicas":   givenInt("Replicas that are left to it at the end."),
			"min_replicas":     givenInt("Floor now."),
			"max_replicas":     givenInt("Ceiling now."),
			"desired_replicas": givenInt("What its autoscaler wants now; null when not told."),
			"ready_replicas":   givenInt("Replicas that answer now."),
			"lifts_ceiling":    schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the rollout lifts the ceiling, since it asks for more than that."},
		}),
		"drift":   schema.ObjectAttribute{Computed: true, AttributeTypes: driftType.AttrTypes, MarkdownDescription: "What a person changed under the rollout of this pair that holds the endpoint, as in `sluice_rollout`; null when none of it does."},
		"summary": given("What it takes, in one line."),
		"traffic_split": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The split now.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"deployment_id": schema.StringAttribute{Computed: true, MarkdownDescription: "Deployment."},
			"weight":        schema.Float64Attribute{Computed: true, MarkdownDescription: "Weight of one ready replica."},
			"share":         givenFloat("Part of the endpoint's traffic, 0 to 1; null when the engine does not show the deployment."),
		}}},
		"lock_holder": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "The rollout that holds the endpoint; null when it is free.", Attributes: map[string]schema.Attribute{
			"rollout_id":      schema.StringAttribute{Computed: true, MarkdownDescription: "Rollout."},
			"state":           schema.StringAttribute{Computed: true, MarkdownDescription: "Its state."},
			"traffic_percent": schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent on its target."},
		}},
		"spec_digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Digest of the spec as asked: that of a `sluice_rollout` with the same spec, so a policy finds the preview of a rollout by it."},
		"plan_digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Digest over the spec, the live split, the replica bounds and the engine's limits: what an approval names, and what any change voids."},
	}
}
