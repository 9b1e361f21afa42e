package provider

import (
	"context"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/numberdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// rolloutModel is a sluice_rollout.
type rolloutModel struct {
	specModel
	ID                    types.String   `tfsdk:"id"`
	OnParked              types.String   `tfsdk:"on_parked"`
	DestroyBehavior       types.String   `tfsdk:"destroy_behavior"`
	OnTimeout             types.String   `tfsdk:"on_timeout"`
	DesiredState          types.String   `tfsdk:"desired_state"`
	Reason                types.String   `tfsdk:"reason"`
	ResumeToken           types.String   `tfsdk:"resume_token"`
	Wait                  types.Bool     `tfsdk:"wait"`
	Timeouts              timeouts.Value `tfsdk:"timeouts"`
	State                 types.String   `tfsdk:"state"`
	Condition             types.Object   `tfsdk:"condition"`
	CurrentTrafficPercent types.Int64    `tfsdk:"current_traffic_percent"`
	CurrentStep           types.Int64    `tfsdk:"current_step"`
	InEffect              types.Object   `tfsdk:"in_effect"`
	SpecDigest            types.String   `tfsdk:"spec_digest"`
	Summary               types.String   `tfsdk:"summary"`
	Drift                 types.Object   `tfsdk:"drift"`
	Journey               types.List     `tfsdk:"journey"`
	Facts                 types.Object   `tfsdk:"facts"`
	Findings              types.List     `tfsdk:"findings"`
}

var (
	rowType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "percentile": types.Int64Type, "verdict": types.StringType, "check": types.StringType,
		"target_value": types.Float64Type, "source_value": types.Float64Type, "regression_percent": types.Float64Type,
		"max_regression_percent": types.Float64Type, "threshold": types.Float64Type,
		"target_samples": types.Int64Type, "source_samples": types.Int64Type, "samples_needed": types.Int64Type,
	}}
	conditionType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"category": types.StringType, "message": types.StringType, "at_step": types.Int64Type,
		"observed_at": types.StringType, "metrics": types.ListType{ElemType: rowType},
	}}
	inEffectType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"wait_seconds": types.Float64Type, "seed_percent": types.Int64Type,
		"final_source_replicas": types.Int64Type, "final_target_replicas": types.Int64Type, "step_count": types.Int64Type,
	}}
)

const (
	parkedWarn     = "warn"
	parkedSilent   = "silent"
	destroyRefuse  = "refuse"
	destroyCancel  = "cancel"
	durationSyntax = "`600s`, `10m` and `1h30m` are durations; two ways of writing one are equal."
)

// Schema describes a rollout.
func (r *rolloutResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		Version: rolloutVersion,
		MarkdownDescription: "Moves an endpoint's traffic from one deployment to another, step by step, with gates. The plan shows the whole journey; the apply submits it and waits until it is COMPLETED or parked.\n\n" +
			"A parked rollout is not an error: the apply ends with a warning that says what was not touched and the three ways on, the resource is saved, and a later apply waits on. " +
			"For a red pipeline use the data source `sluice_rollout_gate`. " +
			"A spec is never changed while it runs: another one is another rollout, and it is refused while this one holds the endpoint.",
		Attributes: map[string]schema.Attribute{
			"id":          schema.StringAttribute{Computed: true, PlanModifiers: keep, MarkdownDescription: "Rollout id, `rol_…`."},
			"endpoint_id": schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint whose traffic moves. Another one replaces the rollout."},
			"source_deployment_id": schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: keep,
				MarkdownDescription: "Deployment that serves today. May be left out when exactly one deployment other than the target has a weight in the split."},
			"target_deployment_id": schema.StringAttribute{Required: true, MarkdownDescription: "Deployment that traffic moves to; it may be stopped, the rollout starts it."},
			"canary": schema.SingleNestedAttribute{
				Optional: true, MarkdownDescription: "Staged percents with a wait and optional gates between them. Exactly one of `canary`, `blue_green` and `rolling`.",
				Attributes: map[string]schema.Attribute{
					"steps": schema.ListNestedAttribute{
						Optional: true, MarkdownDescription: "The ladder: strictly climbing, ending at 100. Default 5, 25, 50, 100.",
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"traffic":  schema.NumberAttribute{CustomType: wholeNumber, Required: true, MarkdownDescription: "Percent of the pair's traffic on the target, 1 to 100."},
							"replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "Target replicas of this step instead of the share rounded up."},
						}},
					},
					"step_interval": schema.StringAttribute{Optional: true, CustomType: durationType,
						MarkdownDescription: "Wait of each step. The engine lengthens it to the longest gate window plus its ingestion lag. " + durationSyntax},
				},
			},
			"blue_green": schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{}, MarkdownDescription: "One step from 0 to 100: `blue_green = {}`."},
			"rolling":    schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{}, MarkdownDescription: "Replica by replica, one up and then one down: `rolling = {}`. As many batches as `final_target_replicas`."},
			"metrics": schema.ListNestedAttribute{
				Optional: true, MarkdownDescription: "Gates of a canary; all must pass after each step's wait.",
				NestedObject: schema.NestedAttributeObject{Attributes: metricAttributes()},
			},
			"final_source_replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, Computed: true, Default: numberdefault.StaticBigFloat(new(big.Float)),
				MarkdownDescription: "Replicas left on the source at the end; 0 (default) drains and stops it."},
			"final_target_replicas": schema.NumberAttribute{CustomType: wholeNumber, Optional: true,
				MarkdownDescription: "Replicas of the target at the end. Default: the source's count; after a cancel the count of both together."},
			"hold_source_until_complete": schema.BoolAttribute{Optional: true,
				MarkdownDescription: "Keep the source at its full size until the last step's gate has passed, and drain it then. The way back is quick all along; the plan shows the replicas that this adds. Takes Sluice's own engine."},
			"circuit_breaker": schema.SingleNestedAttribute{Optional: true,
				MarkdownDescription: "An automatic way back, with any strategy: the engine looks at the rules all the time, in a pause too, and a breach that two looks agree upon sets the target's share back to what it was at the start and parks the rollout `SYSTEM_PAUSED` with `METRIC_REGRESSION`; only a person goes on. Implies `hold_source_until_complete`, since a way back without capacity is none. Takes Sluice's own engine. See the guide \"An automatic way back\".",
				Attributes: map[string]schema.Attribute{
					"signed_by": schema.StringAttribute{Required: true, MarkdownDescription: "Who answers for an engine that acts without a person; told in every trip."},
					"rules": schema.ListNestedAttribute{Required: true, MarkdownDescription: "Thresholds on the target alone; one that is breached is enough.",
						NestedObject: schema.NestedAttributeObject{Attributes: breakerRuleAttributes()}},
				}},
			"on_parked": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString(parkedWarn),
				Validators:          []validator.String{stringvalidator.OneOf(parkedWarn, parkedSilent)},
				MarkdownDescription: "What an apply says when the rollout parks: `warn` (default) or `silent`. Neither fails it: an error would taint the rollout and the next apply would replace it."},
			"destroy_behavior": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString(destroyRefuse),
				Validators:          []validator.String{stringvalidator.OneOf(destroyRefuse, destroyCancel)},
				MarkdownDescription: "What a destroy does while the rollout is under way: `refuse` (default), or `cancel`, which freezes the split as it is. Destroying one that is over deletes the record only."},
			"on_timeout": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString(timeoutDetach),
				Validators:          []validator.String{stringvalidator.OneOf(timeoutDetach, timeoutPause, timeoutCancel)},
				MarkdownDescription: "What an apply does when its time to wait is over: `detach` (default) leaves the rollout going on at the engine, `pause` holds it where it is, `cancel` freezes the split as it is served. The warning tells what was done. An interrupt (Ctrl-C, SIGTERM) always detaches: it says nothing about the rollout."},
			"desired_state": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString(wantCompleted),
				Validators: []validator.String{stringvalidator.OneOf(wantCompleted, wantPaused, wantPromoted, wantCanceled)},
				MarkdownDescription: "Steers a rollout that is under way; a new one starts with `completed`.\n\n" +
					"* `completed` (default): wait for it. A park that the engine or a person has set is not lifted; that needs a new `resume_token`, or the change from `paused` back to `completed`.\n" +
					"* `paused`: hold it where it is.\n" +
					"* `promoted`: skip to the last step, once, when the value changes to it; a later park is not passed over.\n" +
					"* `canceled`: freeze the split as it is served; needs a `reason`. Final: to go on, change the spec and take this out.\n\n" +
					"The plan says what will be sent, and refuses what the state does not allow."},
			"reason": schema.StringAttribute{Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 1024)},
				MarkdownDescription: "Why, for those who read the event feed later. Required with `desired_state = \"canceled\"`; told with `paused` too."},
			"resume_token": schema.StringAttribute{Optional: true,
				MarkdownDescription: "Any text, for example a date and what was found. An apply in which it is new resumes the rollout if it is parked as the plan showed it; one in which it is as before never does. Best a sentence: it stays in the history of the configuration."},
			"wait": schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Wait until the rollout is COMPLETED or parked (default `true`). With `false` an apply returns once it is started."},
			"timeouts": described(timeouts.Attributes(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long an apply waits, for example `2h`. Default: `facts.wait_limit_seconds`, which is one and a half times the least duration plus 30 min for cold starts, and longer where the engine's ladder is. When it ends the rollout goes on, the resource stays as it is, and the next apply waits again.",
				UpdateDescription: "The same for an apply that waits for a rollout which is under way.",
				DeleteDescription: "How long to wait for a canceled rollout to freeze (default 5 min).",
			}), "How long to wait; `on_timeout` says what happens then."),
			"state":                   schema.StringAttribute{Computed: true, MarkdownDescription: "`PENDING`, `RUNNING`, `STABILIZING`, `PAUSING`, `PAUSED`, `SYSTEM_PAUSED`, `CANCELLING`, `CANCELED` or `COMPLETED`. To be known after apply while the rollout is not over: the apply then waits for it."},
			"condition":               conditionSchema(),
			"current_traffic_percent": schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the pair's traffic on the target, as served."},
			"current_step":            schema.Int64Attribute{Computed: true, MarkdownDescription: "Step under way or reached last, counted from 1 as in `journey`; null before the start."},
			"in_effect": schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "What the engine made of the spec, where it tells.", Attributes: map[string]schema.Attribute{
				"wait_seconds":          schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait of each step."},
				"seed_percent":          schema.Int64Attribute{Computed: true, MarkdownDescription: "The target's share of the pair before the first step."},
				"final_source_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Replicas left on the source."},
				"final_target_replicas": schema.Int64Attribute{Computed: true, MarkdownDescription: "Replicas of the target at the end."},
				"step_count":            schema.Int64Attribute{Computed: true, MarkdownDescription: "Steps of the ladder as run."},
			}},
			"spec_digest": schema.StringAttribute{Computed: true, MarkdownDescription: "Digest of the spec as asked. A create adopts the endpoint's open rollout of the same digest; a canceled digest is never started again by itself."},
			"summary":     schema.StringAttribute{Computed: true, MarkdownDescription: "The journey in one line, known at plan."},
			"drift":       driftSchema(),
			"journey": schema.ListNestedAttribute{Computed: true, NestedObject: schema.NestedAttributeObject{Attributes: journeyAttributes()},
				MarkdownDescription: "The way, step by step, known at plan. It follows from the configuration and the engine's timings alone; what depends on live replicas is null here and stands in the data source `sluice_rollout_preview`."},
			"facts": schema.SingleNestedAttribute{Computed: true, Attributes: factsAttributes(), MarkdownDescription: "Flat facts of the journey, for policies, known at plan."},
			"findings": schema.ListNestedAttribute{Computed: true, NestedObject: schema.NestedAttributeObject{Attributes: findingAttributes()},
				MarkdownDescription: "Remarks with stable codes, known at plan. Each code has a page under `docs/findings`."},
		},
	}
}

func metricAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":       schema.StringAttribute{Required: true, MarkdownDescription: "`router_latency` (ms), `router_error_rate` (0 to 1) or `inflight_requests` (per ready replica)."},
		"stat":       schema.StringAttribute{Optional: true, CustomType: statType, MarkdownDescription: "`PERCENTILE` or `AVG`. Required for `router_latency`, the others are averaged."},
		"percentile": schema.NumberAttribute{CustomType: wholeNumber, Optional: true, MarkdownDescription: "With `PERCENTILE`: a whole number from 1 to 99, such as 95."},
		"window":     schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "How far back the gate looks; default and shortest are the engine's (300 s and 60 s on the hosted platform). " + durationSyntax},
		"regression_check": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "The target must not be worse than the source by more than a budget. Exactly one of the two checks.", Attributes: map[string]schema.Attribute{
			"direction": schema.StringAttribute{Required: true, CustomType: directions, MarkdownDescription: "`HIGHER_IS_WORSE` or `LOWER_IS_WORSE`."},
			"max_regression_percent": schema.Float64Attribute{Optional: true, Computed: true, Default: float64default.StaticFloat64(0),
				MarkdownDescription: "Budget in percent; equal passes. 0 (default) fails on any regression."},
		}},
		"threshold_check": schema.SingleNestedAttribute{Optional: true, MarkdownDescription: "The target must satisfy a condition, whatever the source does.", Attributes: map[string]schema.Attribute{
			"operator": schema.StringAttribute{Required: true, CustomType: operators, MarkdownDescription: "`LT`, `LTE`, `GT` or `GTE`: what the target's value must be."},
			"value": schema.Float64Attribute{Optional: true, Computed: true, Default: float64default.StaticFloat64(0),
				MarkdownDescription: "In the metric's unit."},
		}},
	}
}

// breakerRuleAttributes are those of a gate without the check against the source.
func breakerRuleAttributes() map[string]schema.Attribute {
	out := metricAttributes()
	delete(out, "regression_check")
	out["threshold_check"] = schema.SingleNestedAttribute{Required: true, MarkdownDescription: "What the target must satisfy. A window with fewer than 20 requests (of a percentile: than it needs), a gap or no number never trips the breaker.", Attributes: map[string]schema.Attribute{
		"operator": schema.StringAttribute{Required: true, CustomType: operators, MarkdownDescription: "`LT`, `LTE`, `GT` or `GTE`: what the target's value must be."},
		"value": schema.Float64Attribute{Optional: true, Computed: true, Default: float64default.StaticFloat64(0),
			MarkdownDescription: "In the metric's unit."},
	}}
	return out
}

func conditionSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "Why the engine parked the rollout; null when it did not.", Attributes: map[string]schema.Attribute{
		"category":    schema.StringAttribute{Computed: true, MarkdownDescription: "For example `METRIC_REGRESSION` or `CAPACITY_EXHAUSTED`."},
		"message":     schema.StringAttribute{Computed: true, MarkdownDescription: "One or two sentences from the engine."},
		"at_step":     schema.Int64Attribute{Computed: true, MarkdownDescription: "Step, counted from 1."},
		"observed_at": schema.StringAttribute{Computed: true, MarkdownDescription: "When, RFC 3339."},
		"metrics": schema.ListNestedAttribute{Computed: true, MarkdownDescription: "The gate's rows.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"name":                   schema.StringAttribute{Computed: true, MarkdownDescription: "Metric."},
			"percentile":             schema.Int64Attribute{Computed: true, MarkdownDescription: "Percentile, if one."},
			"check":                  schema.StringAttribute{Computed: true, MarkdownDescription: "`REGRESSION` or `THRESHOLD`."},
			"verdict":                schema.StringAttribute{Computed: true, MarkdownDescription: "`PASS`, `BREACHED` or `UNAVAILABLE`."},
			"target_value":           schema.Float64Attribute{Computed: true, MarkdownDescription: "Reading of the target."},
			"source_value":           schema.Float64Attribute{Computed: true, MarkdownDescription: "Reading of the source."},
			"regression_percent":     schema.Float64Attribute{Computed: true, MarkdownDescription: "How much worse the target is."},
			"max_regression_percent": schema.Float64Attribute{Computed: true, MarkdownDescription: "Budget."},
			"threshold":              schema.Float64Attribute{Computed: true, MarkdownDescription: "Threshold."},
			"target_samples":         schema.Int64Attribute{Computed: true, MarkdownDescription: "Requests in the target's window."},
			"source_samples":         schema.Int64Attribute{Computed: true, MarkdownDescription: "Requests in the source's window."},
			"samples_needed":         schema.Int64Attribute{Computed: true, MarkdownDescription: "Requests that each side needs."},
		}}},
	}}
}

func journeyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"step":               schema.Int64Attribute{Computed: true, MarkdownDescription: "Number, from 1."},
		"traffic_percent":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the pair on the target."},
		"delta_percent":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent that moves in this step."},
		"target_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas that must answer before traffic moves; null when it follows the source."},
		"source_replicas":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Source replicas after the drain; null here, known in the preview."},
		"scale_up":           schema.Int64Attribute{Computed: true, MarkdownDescription: "Target replicas that this step adds to what stands; null here, known in the preview."},
		"wait_asked_seconds": schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait as asked."},
		"wait_seconds":       schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait in effect."},
		"wait_reason":        schema.StringAttribute{Computed: true, MarkdownDescription: "Why it differs, or where it comes from; null where it is that of the step before."},
		"starts_at_seconds":  schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time from the start to this step."},
		"least_seconds":      schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time that the step takes, without cold starts."},
		"gated":              schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether a metric rule can judge the step. At 100 % only a `threshold_check` can: the source has no traffic left to compare with."},
	}
}

func factsAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"schema_version":             schema.Int64Attribute{Computed: true, MarkdownDescription: "Version of this shape, see `docs/schemas`. A rule that was written for a version holds for it."},
		"wait_asked_seconds":         schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait of each step as asked."},
		"expected_duration_seconds":  schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time with a cold start for each step that starts replicas; null here, known in the preview."},
		"strategy":                   schema.StringAttribute{Computed: true, MarkdownDescription: "`CANARY`, `BLUE_GREEN` or `ROLLING`."},
		"step_count":                 schema.Int64Attribute{Computed: true, MarkdownDescription: "Steps; null for a rolling swap of unknown size."},
		"first_step_percent":         schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the first step."},
		"max_step_delta_percent":     schema.Int64Attribute{Computed: true, MarkdownDescription: "Largest percent that one step moves."},
		"ungated_percent":            schema.Int64Attribute{Computed: true, MarkdownDescription: "Blast radius: percent on the target before any gate has judged."},
		"gate_count":                 schema.Int64Attribute{Computed: true, MarkdownDescription: "Metric rules."},
		"has_gate":                   schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether there is a metric gate."},
		"wait_seconds":               schema.Float64Attribute{Computed: true, MarkdownDescription: "Wait of each step in effect."},
		"least_duration_seconds":     schema.Float64Attribute{Computed: true, MarkdownDescription: "Least time of the whole way, without cold starts."},
		"wait_limit_seconds":         schema.Float64Attribute{Computed: true, MarkdownDescription: "How long an apply waits at most: `timeouts`, or the default that follows from the ladder."},
		"final_source_replicas":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Replicas left on the source."},
		"final_target_replicas":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Replicas of the target; null when it follows the source."},
		"largest_scale_up":           schema.Int64Attribute{Computed: true, MarkdownDescription: "Most target replicas that one step can add, counted from a stopped target; null when it follows the source."},
		"longest_window_seconds":     schema.Float64Attribute{Computed: true, MarkdownDescription: "Longest window of a metric rule; 0 without one."},
		"requests_per_second_needed": schema.Float64Attribute{Computed: true, MarkdownDescription: "Traffic on the pair below which a gate has too few samples."},
		"holds_source":               schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the source keeps its full size until the last gate has passed."},
		"circuit_breaker_rules":      schema.Int64Attribute{Computed: true, MarkdownDescription: "Rules of the circuit breaker; 0 without one."},
		"circuit_breaker_signed_by":  schema.StringAttribute{Computed: true, MarkdownDescription: "Who signed the circuit breaker; null without one."},
	}
}

func findingAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"code":     schema.StringAttribute{Computed: true, MarkdownDescription: "Stable code, for example `NO_GATE`."},
		"severity": schema.StringAttribute{Computed: true, MarkdownDescription: "`info` or `warning`."},
		"subject":  schema.StringAttribute{Computed: true, MarkdownDescription: "Attribute that it is about."},
		"message":  schema.StringAttribute{Computed: true, MarkdownDescription: "What."},
		"remedy":   schema.StringAttribute{Computed: true, MarkdownDescription: "How to mend it."},
	}
}
