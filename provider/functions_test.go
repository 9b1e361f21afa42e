package provider

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// calls a function as Terraform does; when it refuses, at is the argument's place.
func (p *protocol) calls(t require.TestingT, name string, arguments ...any) (result any, refusal string, at int64) {
	def := p.schema.Functions[name]
	req := &tfprotov6.CallFunctionRequest{Name: name}
	for i, a := range arguments {
		parameter := def.VariadicParameter
		if i < len(def.Parameters) {
			parameter = def.Parameters[i]
		}
		value, ok := a.(tftypes.Value)
		if !ok {
			value = tftypes.NewValue(parameter.Type, a)
		}
		d, err := tfprotov6.NewDynamicValue(parameter.Type, value)
		require.NoError(t, err)
		req.Arguments = append(req.Arguments, &d)
	}
	got, err := p.CallFunction(context.Background(), req)
	require.NoError(t, err)
	if got.Error != nil {
		require.NotNil(t, got.Error.FunctionArgument, got.Error.Text)
		return nil, got.Error.Text, *got.Error.FunctionArgument
	}
	v, err := got.Result.Unmarshal(def.Return.Type)
	require.NoError(t, err)
	return v, "", 0
}

func numbers(n ...int) tftypes.Value {
	var out []tftypes.Value
	for _, v := range n {
		out = append(out, tftypes.NewValue(tftypes.Number, v))
	}
	return tftypes.NewValue(tftypes.List{ElementType: tftypes.Number}, out)
}

func texts(s ...string) tftypes.Value {
	var out []tftypes.Value
	for _, v := range s {
		out = append(out, tftypes.NewValue(tftypes.String, v))
	}
	return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, out)
}

func TestFunctionLadderOfEachStrategy(t *testing.T) {
	p := newProtocol(t, nil)
	for name, c := range map[string]struct {
		arguments []any
		want      [][4]float64 // step, percent, target, source
	}{
		"default canary":  {[]any{"canary", nil, 4, nil}, [][4]float64{{1, 5, 1, 4}, {2, 25, 1, 3}, {3, 50, 2, 2}, {4, 100, 4, 0}}},
		"own steps":       {[]any{"canary", numbers(10, 50, 100), 4, 6, 1}, [][4]float64{{1, 10, 1, 4}, {2, 50, 3, 3}, {3, 100, 6, 1}}},
		"blue-green":      {[]any{"blue_green", nil, 3, nil}, [][4]float64{{1, 100, 3, 0}}},
		"rolling":         {[]any{"ROLLING", nil, 2, nil}, [][4]float64{{1, 50, 1, 1}, {2, 100, 2, 0}}},
		"from a standing": {[]any{"canary", nil, 4, 4, 0, 10}, [][4]float64{{1, 25, 1, 4}, {2, 50, 2, 3}, {3, 100, 4, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, refusal, _ := p.calls(t, "ladder", c.arguments...)
			require.Empty(t, refusal)
			var rungs [][4]float64
			for _, r := range asPlain(t, got.(tftypes.Value)).([]any) {
				m := r.(map[string]any)
				rungs = append(rungs, [4]float64{m["step"].(float64), m["percent"].(float64), m["target_replicas"].(float64), m["source_replicas"].(float64)})
			}
			require.Equal(t, c.want, rungs)
		})
	}
}

// Whatever is asked, the ladder is the engine's own.
func TestFunctionLadderIsTheEnginesArithmetic(t *testing.T) {
	p := newProtocol(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		source, final, left := rapid.IntRange(1, 50).Draw(rt, "source"), rapid.IntRange(1, 50).Draw(rt, "final"), rapid.IntRange(0, 3).Draw(rt, "left")
		first := rapid.IntRange(1, 99).Draw(rt, "first")
		spec := rollout.Spec{Source: "a", Target: "b", Strategy: rollout.Canary, Steps: []rollout.StepSpec{{Percent: first}, {Percent: 100}}, FinalTarget: &final, FinalSource: min(left, source)}
		j, problems := rollout.NewJourney(spec, rollout.Basis{SourceReplicas: source, SourceBounds: rollout.Bounds{Min: source, Max: source}}, rollout.DefaultTimings())
		require.Empty(rt, problems)
		got, refusal, _ := p.calls(rt, "ladder", "canary", numbers(first, 100), source, final, min(left, source))
		require.Empty(rt, refusal)
		rungs := asPlain(t, got.(tftypes.Value)).([]any)
		require.Len(rt, rungs, len(j.Rungs))
		for i, r := range j.Rungs {
			require.Equal(rt, map[string]any{"step": float64(i + 1), "percent": float64(r.Percent), "target_replicas": float64(r.Target), "source_replicas": float64(r.Source)}, rungs[i])
		}
	})
}

func TestFunctionsRefuseAtTheArgument(t *testing.T) {
	p := newProtocol(t, nil)
	for name, c := range map[string]struct {
		function  string
		arguments []any
		at        int64
		says      string
	}{
		"strategy":           {"ladder", []any{"red_black", nil, 4, nil}, ladderStrategy, "canary, blue_green or rolling"},
		"falling steps":      {"ladder", []any{"canary", numbers(50, 10, 100), 4, nil}, ladderSteps, "10"},
		"steps of a rolling": {"ladder", []any{"rolling", numbers(50, 100), 4, nil}, ladderSteps, "Only a canary"},
		"no source":          {"ladder", []any{"canary", nil, 0, nil}, ladderSource, "no traffic"},
		"no target":          {"ladder", []any{"canary", nil, 4, 0}, ladderFinal, "cannot serve"},
		"more left than was": {"ladder", []any{"canary", nil, 4, nil, 5}, ladderRest, "5 replicas"},
		"seed of all":        {"ladder", []any{"canary", nil, 4, nil, 0, 100}, ladderRest + 1, "0 to 99"},
		"seed above steps":   {"ladder", []any{"canary", numbers(10, 100), 4, nil, 0, 50}, ladderSteps, "50"},
		"too much":           {"ladder", []any{"canary", nil, 4, nil, 0, 0, 0}, ladderRest + 2, "At most two"},
		"interval":           {"soak_seconds", []any{"soon", nil}, 0, "not a duration"},
		"nothing":            {"soak_seconds", []any{"0s", nil}, 0, "not longer"},
		"window":             {"soak_seconds", []any{nil, texts("5 minutes")}, 1, "not a duration"},
		"lag":                {"soak_seconds", []any{nil, nil, "x"}, 2, "not a duration"},
		"two lags":           {"soak_seconds", []any{nil, nil, "1s", "2s"}, 3, "one ingestion lag"},
		"percent":            {"replicas_for_share", []any{3, 101}, 1, "0 to 100"},
		"replicas":           {"replicas_for_share", []any{-1, 10}, 0, "count of replicas"},
		"half an id":         {"parse_rollout_id", []any{"ep_1/"}, 0, "has no rollout_id"},
		"three parts":        {"parse_rollout_id", []any{"a/b/c"}, 0, "endpoint_id/rollout_id"},
		"empty":              {"parse_rollout_id", []any{" "}, 0, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, refusal, at := p.calls(t, c.function, c.arguments...)
			require.Contains(t, refusal, c.says)
			require.Equal(t, c.at, at)
		})
	}
}

func TestFunctionsSoakReplicasAndParse(t *testing.T) {
	p := newProtocol(t, nil)
	for _, c := range []struct {
		function  string
		arguments []any
		want      any
	}{
		{"soak_seconds", []any{"3m", texts("300s", "60s")}, 390.0},
		{"soak_seconds", []any{"10m", texts("300s")}, 600.0},
		{"soak_seconds", []any{nil, nil}, 180.0},
		{"soak_seconds", []any{"1m", texts("300s"), "10s"}, 310.0},
		{"replicas_for_share", []any{3, 10}, 1.0},
		{"replicas_for_share", []any{10, 25}, 3.0},
		{"replicas_for_share", []any{10, 0}, 0.0},
		{"parse_rollout_id", []any{"ep_1/rol_1"}, map[string]any{"endpoint_id": "ep_1", "rollout_id": "rol_1"}},
		{"parse_rollout_id", []any{"rol_1"}, map[string]any{"endpoint_id": nil, "rollout_id": "rol_1"}},
	} {
		got, refusal, _ := p.calls(t, c.function, c.arguments...)
		require.Empty(t, refusal)
		require.Equal(t, c.want, asPlain(t, got.(tftypes.Value)), "%s%v", c.function, c.arguments)
	}
}
