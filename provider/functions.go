package provider

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var (
	_ function.Function = soakFunction{}
	_ function.Function = replicasFunction{}
	_ function.Function = parseFunction{}
)

func newSoakFunction() function.Function     { return soakFunction{} }
func newReplicasFunction() function.Function { return replicasFunction{} }
func newParseFunction() function.Function    { return parseFunction{} }

// soakFunction tells how long a step waits in effect.
type soakFunction struct{}

// Metadata names the function.
func (soakFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "soak_seconds"
}

// Definition describes the arguments.
func (soakFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	t := rollout.DefaultTimings()
	resp.Definition = function.Definition{
		Summary: "The wait of a canary's step in effect",
		MarkdownDescription: "Seconds that each step of a canary waits in effect: what was asked, grown to the longest gate window plus the time until its last request can be read. " +
			"Durations are written like `10m` or `600s`.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "step_interval", AllowNullValue: true, MarkdownDescription: fmt.Sprintf("Wait as asked; `null` for the default of %v.", t.DefaultInterval)},
			function.ListParameter{Name: "windows", ElementType: types.StringType, AllowNullValue: true, MarkdownDescription: "Windows of the metric rules; `null` or empty for a rollout without gates."},
		},
		VariadicParameter: function.StringParameter{Name: "ingestion_lag", MarkdownDescription: fmt.Sprintf("At most one: the engine's time from a request to its readable data point, when it is not the published %v.", t.IngestionLag)},
		Return:            function.Float64Return{},
	}
}

// Run asks the core.
func (soakFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var interval *string
	var windows, lag []string
	if resp.Error = req.Arguments.Get(ctx, &interval, &windows, &lag); resp.Error != nil {
		return
	}
	spec, t := rollout.Spec{Strategy: rollout.Canary}, rollout.DefaultTimings()
	if interval != nil {
		if spec.StepInterval, resp.Error = durationArgument(0, *interval); resp.Error != nil {
			return
		}
	}
	for _, w := range windows {
		window, wrong := durationArgument(1, w)
		if wrong != nil {
			resp.Error = wrong
			return
		}
		spec.Rules = append(spec.Rules, rollout.Rule{Window: window})
	}
	if len(lag) > 1 {
		resp.Error = function.NewArgumentFuncError(3, "There is one ingestion lag.")
		return
	}
	if len(lag) == 1 {
		if t.IngestionLag, resp.Error = durationArgument(2, lag[0]); resp.Error != nil {
			return
		}
	}
	_, inEffect := t.Soak(spec)
	resp.Error = resp.Result.Set(ctx, inEffect.Seconds())
}

// durationArgument reads a duration above zero.
func durationArgument(at int64, text string) (time.Duration, *function.FuncError) {
	d, err := parseDuration(text)
	if err != nil {
		return 0, function.NewArgumentFuncError(at, sentence(upper(err.Error())))
	}
	if d <= 0 {
		return 0, function.NewArgumentFuncError(at, fmt.Sprintf("%q is not longer than nothing.", text))
	}
	return d, nil
}

// replicasFunction tells how many replicas a share needs.
type replicasFunction struct{}

// Metadata names the function.
func (replicasFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "replicas_for_share"
}

// Definition describes the arguments.
func (replicasFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "The replicas that a share of the traffic needs",
		MarkdownDescription: "Replicas that a target needs to carry a percent of the pair's traffic, when so many carry all of it: rounded up, and at least one for any share above 0.",
		Parameters: []function.Parameter{
			function.Int64Parameter{Name: "replicas", MarkdownDescription: "Replicas that carry all of the traffic."},
			function.Int64Parameter{Name: "percent", MarkdownDescription: "Percent of the pair's traffic, a whole number from 0 to 100."},
		},
		Return: function.Int64Return{},
	}
}

// Run asks the core.
func (replicasFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var replicas, percent int64
	if resp.Error = req.Arguments.Get(ctx, &replicas, &percent); resp.Error != nil {
		return
	}
	if replicas < 0 || replicas > rollout.MaxReplicas {
		resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("%d is not a count of replicas from 0 to %d.", replicas, rollout.MaxReplicas))
		return
	}
	if percent < 0 || percent > 100 {
		resp.Error = function.NewArgumentFuncError(1, fmt.Sprintf("%d is not a percent from 0 to 100.", percent))
		return
	}
	resp.Error = resp.Result.Set(ctx, int64(rollout.TargetFor(int(replicas), int(percent))))
}

// parseFunction cuts an import id.
type parseFunction struct{}

var rolloutIDType = map[string]attr.Type{"endpoint_id": types.StringType, "rollout_id": types.StringType}

// Metadata names the function.
func (parseFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "parse_rollout_id"
}

// Definition describes the argument.
func (parseFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "The parts of a rollout's import id",
		MarkdownDescription: "An object `{endpoint_id, rollout_id}` of an import id, `endpoint/rollout`. A rollout's id alone does as well; `endpoint_id` is then null.",
		Parameters:          []function.Parameter{function.StringParameter{Name: "id", MarkdownDescription: "For example `ep_0123456789/rol_0123456789`."}},
		Return:              function.ObjectReturn{AttributeTypes: rolloutIDType},
	}
}

// Run cuts.
func (parseFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var id string
	if resp.Error = req.Arguments.Get(ctx, &id); resp.Error != nil {
		return
	}
	endpoint, bare := types.StringNull(), strings.TrimSpace(id)
	if strings.Contains(id, "/") {
		parts, err := splitImportID(id, "endpoint_id", "rollout_id")
		if err != nil {
			resp.Error = function.NewArgumentFuncError(0, sentence(err.Error()))
			return
		}
		endpoint, bare = types.StringValue(parts[0]), parts[1]
	}
	if bare == "" {
		resp.Error = function.NewArgumentFuncError(0, "The id is empty.")
		return
	}
	resp.Error = resp.Result.Set(ctx, types.ObjectValueMust(rolloutIDType, map[string]attr.Value{"endpoint_id": endpoint, "rollout_id": types.StringValue(bare)}))
}
