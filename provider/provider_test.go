package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dsschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	fwprovider "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func resourceSchema(t *testing.T, r resource.Resource) schema.Schema {
	t.Helper()
	var resp resource.SchemaResponse
	r.Schema(t.Context(), resource.SchemaRequest{}, &resp)
	require.False(t, resp.Diagnostics.HasError())
	return resp.Schema
}

func TestSchemasAreValidAndEveryAttributeIsDescribed(t *testing.T) {
	p := New("test")()
	var resp fwprovider.SchemaResponse
	p.Schema(t.Context(), fwprovider.SchemaRequest{}, &resp)
	require.Empty(t, resp.Schema.ValidateImplementation(t.Context()))
	for _, newResource := range p.Resources(t.Context()) {
		s := resourceSchema(t, newResource())
		require.Empty(t, s.ValidateImplementation(t.Context()))
		require.NotEmpty(t, s.MarkdownDescription)
		for name, a := range s.Attributes {
			describedAll(t, name, a)
		}
	}
	for _, newSource := range p.DataSources(t.Context()) {
		var resp datasource.SchemaResponse
		newSource().Schema(t.Context(), datasource.SchemaRequest{}, &resp)
		require.Empty(t, resp.Schema.ValidateImplementation(t.Context()))
		for name, a := range resp.Schema.Attributes {
			describedAll(t, name, a)
		}
	}
}

type documented interface {
	GetDescription() string
	GetMarkdownDescription() string
}

func describedAll(t *testing.T, name string, a documented) {
	t.Helper()
	require.NotEmpty(t, a.GetMarkdownDescription()+a.GetDescription(), name)
	switch n := a.(type) {
	case schema.SingleNestedAttribute:
		for k, v := range n.Attributes {
			describedAll(t, name+"."+k, v)
		}
	case schema.ListNestedAttribute:
		for k, v := range n.NestedObject.Attributes {
			describedAll(t, name+"."+k, v)
		}
	case dsschema.SingleNestedAttribute:
		for k, v := range n.Attributes {
			describedAll(t, name+"."+k, v)
		}
	case dsschema.ListNestedAttribute:
		for k, v := range n.NestedObject.Attributes {
			describedAll(t, name+"."+k, v)
		}
	}
}

// Models and schemas cannot drift apart: a null value of each schema fits its model.
func TestModelsFitTheirSchemas(t *testing.T) {
	for _, c := range []struct {
		schema schema.Schema
		model  any
	}{
		{resourceSchema(t, newEndpointResource()), &endpointModel{}},
		{resourceSchema(t, newDeploymentResource()), &deploymentModel{}},
		{resourceSchema(t, newRolloutResource()), &rolloutModel{}},
	} {
		state := tfsdk.State{Schema: c.schema, Raw: tftypes.NewValue(c.schema.Type().TerraformType(t.Context()), nil)}
		raw := map[string]tftypes.Value{}
		for name, typ := range c.schema.Type().TerraformType(t.Context()).(tftypes.Object).AttributeTypes {
			raw[name] = tftypes.NewValue(typ, nil)
		}
		state.Raw = tftypes.NewValue(c.schema.Type().TerraformType(t.Context()), raw)
		require.Empty(t, state.Get(t.Context(), c.model))
		require.Empty(t, state.Set(t.Context(), c.model))
	}
}

func TestTwoSpellingsOfOneMeaningAreEqual(t *testing.T) {
	for _, c := range []struct {
		t     textType
		a, b  string
		equal bool
	}{
		{durationType, "600s", "10m", true},
		{durationType, "600s", "10m0s", true},
		{durationType, "600s", "601s", false},
		{durationType, "47.904674515s", "47904674515ns", true},
		{durationType, "soon", "later", false},
		{statType, "PERCENTILE", "METRIC_STAT_TYPE_PERCENTILE", true},
		{statType, "PERCENTILE", "AVG", false},
		{directions, "HIGHER_IS_WORSE", "REGRESSION_DIRECTION_HIGHER_IS_WORSE", true},
		{operators, "LT", "THRESHOLD_OPERATOR_LTE", false},
	} {
		same, diags := newText(c.t, c.a).StringSemanticEquals(t.Context(), newText(c.t, c.b))
		require.Empty(t, diags)
		require.Equal(t, c.equal, same, "%s and %s", c.a, c.b)
	}
}

func TestWireFieldsBecomeAttributePaths(t *testing.T) {
	for field, want := range map[string]path.Path{
		"canary.steps[1].traffic":                         path.Root("canary").AtName("steps").AtListIndex(1).AtName("traffic"),
		"metrics[0].regressionCheck.maxRegressionPercent": path.Root("metrics").AtListIndex(0).AtName("regression_check").AtName("max_regression_percent"),
		"targetDeploymentId":                              path.Root("target_deployment_id"),
		"":                                                path.Empty(),
	} {
		require.True(t, want.Equal(attributePath(field)), field)
	}
}

func asModel(s api.RolloutSpec) specModel {
	m := specModel{EndpointID: types.StringValue("ep_1")}
	m.fill(s)
	return m
}

func good() api.RolloutSpec {
	window, p, budget := api.Duration(300e9), 95, 25.0
	return api.RolloutSpec{
		SourceDeploymentID: "dep_a", TargetDeploymentID: "dep_b",
		Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 10}, {Traffic: 100}}},
		Metrics: []api.MetricRule{{Name: "router_latency", Stat: "METRIC_STAT_TYPE_PERCENTILE", Percentile: &p, Window: &window,
			RegressionCheck: &api.RegressionCheck{Direction: "REGRESSION_DIRECTION_HIGHER_IS_WORSE", MaxRegressionPercent: &budget}}},
	}
}

func TestEachProblemStandsAtItsAttributePath(t *testing.T) {
	m := asModel(good())
	_, d, diags := m.check(rollout.DefaultTimings())
	require.Empty(t, diags)
	require.True(t, d.digestKnown())
	for name, c := range map[string]struct {
		change func(*api.RolloutSpec)
		at     path.Path
	}{
		"ladder falls":  {func(s *api.RolloutSpec) { s.Canary.Steps[1].Traffic = 5 }, path.Root("canary").AtName("steps").AtListIndex(1).AtName("traffic")},
		"short window":  {func(s *api.RolloutSpec) { *s.Metrics[0].Window = 30e9 }, path.Root("metrics").AtListIndex(0).AtName("window")},
		"stat max":      {func(s *api.RolloutSpec) { s.Metrics[0].Stat = "METRIC_STAT_TYPE_MAX" }, path.Root("metrics").AtListIndex(0).AtName("stat")},
		"same sides":    {func(s *api.RolloutSpec) { s.SourceDeploymentID = "dep_b" }, path.Root("target_deployment_id")},
		"final target":  {func(s *api.RolloutSpec) { z := 0; s.FinalTargetReplicas = &z }, path.Root("final_target_replicas")},
		"gates rolling": {func(s *api.RolloutSpec) { s.Canary, s.Rolling = nil, &api.Rolling{} }, path.Root("metrics")},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			c.change(&s)
			m := asModel(s)
			_, _, diags := m.check(rollout.DefaultTimings())
			require.NotEmpty(t, diags)
			for _, d := range diags {
				at, ok := d.(diag.DiagnosticWithPath)
				require.True(t, ok)
				require.True(t, topLevel(c.at).Equal(at.Path()), "%s: %s", at.Path(), d.Detail())
				require.Contains(t, d.Summary(), c.at.String())
			}
		})
	}
	both := asModel(good())
	both.BlueGreen = types.ObjectValueMust(emptyType.AttrTypes, map[string]attr.Value{})
	_, _, diags = both.check(rollout.DefaultTimings())
	require.Equal(t, path.Root("blue_green").String(), diags[0].(diag.DiagnosticWithPath).Path().String())
}

// What is not known yet is never reported as wrong, and shows in what is known.
func TestUnknownValuesAreNotProblems(t *testing.T) {
	m := asModel(good())
	m.TargetDeploymentID = types.StringUnknown()
	_, d, diags := m.check(rollout.DefaultTimings())
	require.Empty(t, diags)
	require.True(t, d.shapeKnown(), "the journey does not depend on ids")
	require.False(t, d.digestKnown())

	m = asModel(good())
	m.Canary = types.ObjectUnknown(canaryType.AttrTypes)
	_, d, diags = m.check(rollout.DefaultTimings())
	require.Empty(t, diags)
	require.False(t, d.shapeKnown())

	m = asModel(good())
	rule := m.Metrics.Elements()[0].(types.Object).Attributes()
	rule["stat"] = text{StringValue: types.StringUnknown(), kind: statType.kind}
	m.Metrics = types.ListValueMust(metricType, []attr.Value{types.ObjectValueMust(metricType.AttrTypes, rule)})
	_, d, diags = m.check(rollout.DefaultTimings())
	require.Empty(t, diags)
	require.False(t, d.shapeKnown())
}

func TestOneSpecIsOneSpecHoweverSpelled(t *testing.T) {
	state := asModel(good())
	asked := asModel(good())
	asked.SourceDeploymentID = types.StringNull()
	require.True(t, sameSpec(state, asked), "an inferred source is the one in the state")
	asked.Canary = types.ObjectValueMust(canaryType.AttrTypes, map[string]attr.Value{
		"steps": listAt(state.Canary, "steps"), "step_interval": newText(durationType, "5m"),
	})
	require.False(t, sameSpec(state, asked))
	asked = asModel(good())
	asked.EndpointID = types.StringValue("ep_2")
	require.False(t, sameSpec(state, asked))
	asked = asModel(good())
	asked.TargetDeploymentID = types.StringUnknown()
	require.False(t, sameSpec(state, asked))
}

// Every spec that the engine can tell survives the way into a model and back, so
// that an import plans nothing.
func TestEverySpecSurvivesAnImport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := good()
		s.Canary.Steps = nil
		for p := rapid.IntRange(1, 101).Draw(t, "first"); p <= 100; p += rapid.IntRange(1, 50).Draw(t, "rise") {
			s.Canary.Steps = append(s.Canary.Steps, api.CanaryStep{Traffic: p})
		}
		if rapid.Bool().Draw(t, "interval") {
			d := api.Duration(rapid.Int64Range(1, 1e13).Draw(t, "nanoseconds"))
			s.Canary.StepInterval = &d
		}
		if rapid.Bool().Draw(t, "threshold") {
			v := rapid.Float64Range(0.1, 1e6).Draw(t, "value")
			s.Metrics[0].RegressionCheck, s.Metrics[0].ThresholdCheck = nil, &api.ThresholdCheck{Operator: "THRESHOLD_OPERATOR_LT", Value: &v}
		}
		spec, _ := wire.SpecFromAPI(s)
		m := asModel(s)
		require.Equal(t, planning.Digest(spec), planning.DigestOf(m.decode().spec))
	})
}

func TestAdoptionTellsTheSameSpecFromAnother(t *testing.T) {
	spec := good()
	digest := planning.DigestOf(spec)
	live := api.Rollout{SourceDeploymentID: "dep_a", TargetDeploymentID: "dep_b", Strategy: "ROLLOUT_STRATEGY_TYPE_CANARY",
		Status: api.RolloutStatus{Steps: []api.RolloutStep{{TargetTrafficPercent: 10}, {TargetTrafficPercent: 100}}}}
	require.True(t, planning.SameRollout(live, spec, digest), "a hosted engine shows pair, strategy and ladder")
	live.Sluice = &api.RolloutExtra{Digest: "sha256:other"}
	require.False(t, planning.SameRollout(live, spec, digest))
	live.Sluice.Digest = digest
	require.True(t, planning.SameRollout(live, spec, digest))
	live.Sluice = &api.RolloutExtra{Spec: &spec}
	asked := spec
	asked.SourceDeploymentID = ""
	require.True(t, planning.SameRollout(live, asked, planning.DigestOf(asked)))
	live.Sluice, live.Status.Steps = nil, live.Status.Steps[1:]
	require.False(t, planning.SameRollout(live, spec, digest))
}

func TestSettingsPreferTheBlockThenSluiceThenTogether(t *testing.T) {
	s := setting{"engine_url", types.StringNull(), []string{"SLUICE_ENGINE_URL", "TOGETHER_BASE_URL"}}
	t.Setenv("SLUICE_ENGINE_URL", "")
	t.Setenv("TOGETHER_BASE_URL", " http://together ")
	require.Equal(t, "http://together", s.resolve())
	t.Setenv("SLUICE_ENGINE_URL", "http://sluice")
	require.Equal(t, "http://sluice", s.resolve())
	s.value = types.StringValue("http://block")
	require.Equal(t, "http://block", s.resolve())
}

func TestImportIDsAreChecked(t *testing.T) {
	parts, err := splitImportID("ep_1/rol_1", "endpoint_id", "rollout_id")
	require.NoError(t, err)
	require.Equal(t, []string{"ep_1", "rol_1"}, parts)
	for _, bad := range []string{"", "rol_1", "ep_1/", "a/b/c"} {
		_, err := splitImportID(bad, "endpoint_id", "rollout_id")
		require.Error(t, err, bad)
	}
}

func TestWarningsNeverStayErrors(t *testing.T) {
	var in diag.Diagnostics
	in.AddError("a", "b")
	require.False(t, warnings(in).HasError())
	require.True(t, strings.Contains(waitFor(api.Rollout{Status: api.RolloutStatus{TotalSteps: 3}}).String(), "52m"))
}
