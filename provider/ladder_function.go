package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var _ function.Function = ladderFunction{}

func newLadderFunction() function.Function { return ladderFunction{} }

// ladderFunction makes the rungs of a strategy, by the arithmetic of the engine.
type ladderFunction struct{}

var rungType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"step": types.Int64Type, "percent": types.Int64Type, "target_replicas": types.Int64Type, "source_replicas": types.Int64Type,
}}

// The places of the arguments, for errors that name one.
const (
	ladderStrategy = iota
	ladderSteps
	ladderSource
	ladderFinal
	ladderRest
)

// Metadata names the function.
func (ladderFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "ladder"
}

// Definition describes the arguments.
func (ladderFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The rungs of a rollout with their replicas",
		MarkdownDescription: "The rungs that a rollout would go through, as a list of objects `{step, percent, target_replicas, source_replicas}`: the step from 1, the percent of the pair's traffic on the target, " +
			"the target's floor before the traffic moves, and the source's after its drain. Targets round up, drains round down, and before the end the total never falls below what it was. It is what the engine computes, without asking one.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "strategy", MarkdownDescription: "`canary`, `blue_green` or `rolling`."},
			function.ListParameter{Name: "steps", ElementType: types.Int64Type, AllowNullValue: true, MarkdownDescription: "Percents of a canary's steps, rising, the last one 100. `null` or empty for the default ladder 5, 25, 50, 100; the other strategies take none."},
			function.Int64Parameter{Name: "source_replicas", MarkdownDescription: "Replicas of the source at the start, at least 1."},
			function.Int64Parameter{Name: "final_target_replicas", AllowNullValue: true, MarkdownDescription: "Replicas of the target at the end; `null` for as many as the source has."},
		},
		VariadicParameter: function.Int64Parameter{Name: "final_source_and_seed", MarkdownDescription: "First the replicas left on the source, default 0; then the percent of the pair's traffic that the target has before the first step, default 0, for which it is taken to have the replicas."},
		Return:            function.ListReturn{ElementType: rungType},
	}
}

// Run makes the ladder.
func (ladderFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var strategy string
	var steps []int64
	var source int64
	var final *int64
	var rest []int64
	if resp.Error = req.Arguments.Get(ctx, &strategy, &steps, &source, &final, &rest); resp.Error != nil {
		return
	}
	spec, basis, wrong := ladderInput(strategy, steps, source, final, rest)
	if wrong != nil {
		resp.Error = wrong
		return
	}
	j, problems := rollout.NewJourney(spec, basis, rollout.DefaultTimings())
	if resp.Error = ladderError(problems); resp.Error != nil {
		return
	}
	rungs := make([]attr.Value, 0, len(j.Rungs))
	for i, r := range j.Rungs {
		rungs = append(rungs, types.ObjectValueMust(rungType.AttrTypes, map[string]attr.Value{
			"step": types.Int64Value(int64(i) + 1), "percent": types.Int64Value(int64(r.Percent)),
			"target_replicas": types.Int64Value(int64(r.Target)), "source_replicas": types.Int64Value(int64(r.Source)),
		}))
	}
	resp.Error = resp.Result.Set(ctx, types.ListValueMust(rungType, rungs))
}

// ladderInput turns the arguments into the core's nouns, with its checks.
func ladderInput(strategy string, steps []int64, source int64, final *int64, rest []int64) (rollout.Spec, rollout.Basis, *function.FuncError) {
	spec := rollout.Spec{Source: "source", Target: "target", Strategy: rollout.Strategy(strings.ToUpper(strategy))}
	if source < 1 || source > rollout.MaxReplicas {
		return spec, rollout.Basis{}, function.NewArgumentFuncError(ladderSource, fmt.Sprintf("A source with %d replicas has no traffic to move; give 1 to %d.", source, rollout.MaxReplicas))
	}
	if len(rest) > 2 {
		return spec, rollout.Basis{}, function.NewArgumentFuncError(ladderRest+2, "At most two more numbers are taken: the replicas left on the source, and the seed percent.")
	}
	if len(steps) > 0 && spec.Strategy != rollout.Canary {
		return spec, rollout.Basis{}, function.NewArgumentFuncError(ladderSteps, "Only a canary has steps; give null.")
	}
	for _, p := range steps {
		spec.Steps = append(spec.Steps, rollout.StepSpec{Percent: int(p)})
	}
	if final != nil {
		n := int(*final)
		spec.FinalTarget = &n
	}
	basis := rollout.Basis{SourceReplicas: int(source), SourceBounds: rollout.Bounds{Min: int(source), Max: int(source)}}
	if len(rest) > 0 {
		spec.FinalSource = int(rest[0])
	}
	if wrong := ladderError(spec.Validate(rollout.DefaultTimings())); wrong != nil {
		return spec, basis, wrong
	}
	if len(rest) == 2 {
		if rest[1] < 0 || rest[1] > 99 {
			return spec, basis, function.NewArgumentFuncError(ladderRest+1, fmt.Sprintf("A seed of %d %% leaves nothing to move; give 0 to 99.", rest[1]))
		}
		basis.Seed = int(rest[1])
		size := int(source)
		if spec.FinalTarget != nil {
			size = *spec.FinalTarget
		}
		basis.TargetReplicas = rollout.TargetFor(size, basis.Seed)
		spec.FinalTarget = &size
	}
	return spec, basis, nil
}

// ladderError says the first problem at the argument that it is about.
func ladderError(problems []rollout.Problem) *function.FuncError {
	if len(problems) == 0 {
		return nil
	}
	p := problems[0]
	text := sentence(upper(p.String()))
	switch {
	case strings.HasPrefix(p.Field, "canary"):
		return function.NewArgumentFuncError(ladderSteps, text)
	case p.Field == "finalTargetReplicas":
		return function.NewArgumentFuncError(ladderFinal, text)
	case p.Field == "finalSourceReplicas":
		return function.NewArgumentFuncError(ladderRest, text)
	}
	return function.NewArgumentFuncError(ladderStrategy, "Give canary, blue_green or rolling.")
}

// upper begins a sentence.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
