package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

// realEngineFile is an engine whose rollouts take about a second, with room for many.
const realEngineFile = `
project: {id: proj_test, slug: acme}
fleet: {driver: simulated}
hardware:
  - {id: 1xtest, capacity: 2000}
configs:
  - {id: cr_old, models: [m/old], hardware: 1xtest, simulated: {cold_start: 20ms}}
  - {id: cr_new, models: [m/new], hardware: 1xtest, simulated: {cold_start: 20ms}}
timings: {propagation: 50ms, default_interval: 400ms, stabilization: 50ms, ingestion_lag: 200ms, minimum_window: 500ms, default_window: 1s, gate_settle: 100ms}
meter: {slot: 50ms}
`

// realEngine is a served engine with a client that no fault reaches.
type realEngine struct {
	*serve.Server
	client *engineclient.Client
}

func startReal(t *testing.T, dir, listen string) *realEngine {
	t.Helper()
	path := filepath.Join(dir, "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(realEngineFile), 0o600))
	file, err := serve.ReadFile(path)
	require.NoError(t, err)
	s, err := serve.Start(t.Context(), serve.Options{Dir: filepath.Join(dir, "data"), Listen: listen, GatewayListen: "127.0.0.1:0", File: file, Version: "test"})
	require.NoError(t, err)
	key, err := os.ReadFile(filepath.Join(dir, "data", "first-key"))
	require.NoError(t, err)
	c, err := engineclient.New(engineclient.Config{BaseURL: s.APIURL, APIKey: string(key)})
	require.NoError(t, err)
	return &realEngine{s, c}
}

var (
	names   sync.Mutex
	counted int
)

// pair is an endpoint with a source that serves and a stopped target.
type pair struct{ endpoint, source, target string }

func (e *realEngine) pair(t *testing.T) pair {
	t.Helper()
	names.Lock()
	counted++
	name := fmt.Sprintf("chat-%d", counted)
	names.Unlock()
	ctx, one, none := t.Context(), 1, 0
	ep, err := e.client.CreateEndpoint(ctx, api.CreateEndpoint{Name: name}, "")
	require.NoError(t, err)
	s, err := e.client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "old", Model: "m/old", Autoscaling: api.Autoscaling{MinReplicas: &one, MaxReplicas: &one}}, "")
	require.NoError(t, err)
	d, err := e.client.CreateDeployment(ctx, ep.ID, api.CreateDeployment{Name: "new", Model: "m/new", Autoscaling: api.Autoscaling{MinReplicas: &none, MaxReplicas: &none}}, "")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := e.client.GetDeployment(ctx, ep.ID, s.ID)
		return err == nil && got.Status.ReadyReplicas == 1
	}, 30*time.Second, 10*time.Millisecond)
	_, err = e.client.UpdateEndpoint(ctx, ep.ID, "", api.UpdateEndpoint{TrafficSplit: &[]api.TrafficWeight{{DeploymentID: s.ID, Weight: 1}}})
	require.NoError(t, err)
	return pair{ep.ID, s.ID, d.ID}
}

// spec is a canary of two steps between a pair's sides.
func (p pair) spec(more map[string]any) map[string]any {
	config := map[string]any{
		"endpoint_id": p.endpoint, "source_deployment_id": p.source, "target_deployment_id": p.target,
		"canary": map[string]any{"steps": []any{map[string]any{"traffic": 50}, map[string]any{"traffic": 100}}},
	}
	for k, v := range more {
		config[k] = v
	}
	return config
}

// core does with one sluice_rollout what Terraform does: refresh, plan, plan again at
// the apply, apply, and judge the answer: an error of a create that left a state
// taints it, and a planned value that came out otherwise is the provider's bug.
type core struct {
	*protocol
	typ     tftypes.Type
	state   tftypes.Value
	tainted bool
}

func newCore(t *testing.T, url, key string, adjust func(*engineclient.Config)) (*core, string) {
	t.Helper()
	p := &protocol{ProviderServer: providerserver.NewProtocol6(&sluiceProvider{version: "test", adjust: adjust})()}
	var err error
	p.schema, err = p.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	typ := p.schema.ResourceSchemas["sluice_rollout"].ValueType()
	return &core{protocol: p, typ: typ, state: tftypes.NewValue(typ, nil)}, errorsOf(p.configure(t, map[string]any{"engine_url": url, "api_key": key}))
}

func errorsOf(diags []*tfprotov6.Diagnostic) string {
	var out []string
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			out = append(out, d.Summary+": "+d.Detail)
		}
	}
	return strings.Join(out, "\n")
}

func (c *core) value(t *testing.T, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	d, err := tfprotov6.NewDynamicValue(c.typ, v)
	require.NoError(t, err)
	return &d
}

// attributes of the state as plain Go; nil when there is none.
func (c *core) attributes(t *testing.T) map[string]any {
	t.Helper()
	if c.state.IsNull() {
		return nil
	}
	return asPlain(t, c.state).(map[string]any)
}

// refresh reads the state again and returns the errors.
func (c *core) refresh(t *testing.T) string {
	t.Helper()
	if c.state.IsNull() {
		return ""
	}
	got, err := c.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "sluice_rollout", CurrentState: c.value(t, c.state)})
	require.NoError(t, err)
	c.state, err = got.NewState.Unmarshal(c.typ)
	require.NoError(t, err)
	return errorsOf(got.Diagnostics)
}

// plan plans once.
func (c *core) plan(t *testing.T, config tftypes.Value) (*tfprotov6.PlanResourceChangeResponse, tftypes.Value) {
	t.Helper()
	got, err := c.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{TypeName: "sluice_rollout",
		PriorState: c.value(t, c.state), ProposedNewState: c.value(t, c.proposed(t, config)), Config: c.value(t, config)})
	require.NoError(t, err)
	if errorsOf(got.Diagnostics) != "" {
		return got, tftypes.Value{}
	}
	v, err := got.PlannedState.Unmarshal(c.typ)
	require.NoError(t, err)
	return got, v
}

// proposed is the configuration with what is computed as it was.
func (c *core) proposed(t *testing.T, config tftypes.Value) tftypes.Value {
	t.Helper()
	if c.state.IsNull() {
		return config
	}
	var was, asked map[string]tftypes.Value
	require.NoError(t, c.state.As(&was))
	require.NoError(t, config.As(&asked))
	for _, a := range c.schema.ResourceSchemas["sluice_rollout"].Block.Attributes {
		if a.Computed && asked[a.Name].IsNull() {
			asked[a.Name] = was[a.Name]
		}
	}
	return tftypes.NewValue(c.typ, asked)
}

// apply refreshes, plans twice and applies. It returns the errors and the warnings.
func (c *core) apply(t *testing.T, asked map[string]any) (wrong, warned string) {
	t.Helper()
	config := asTerraform(t, c.typ, asked)
	if wrong := c.refresh(t); wrong != "" {
		return wrong, ""
	}
	require.False(t, c.tainted, "a tainted rollout would be canceled and started anew")
	first, planned := c.plan(t, config)
	if wrong := errorsOf(first.Diagnostics); wrong != "" {
		return wrong, ""
	}
	require.Empty(t, first.RequiresReplace)
	if planned.Equal(c.state) {
		return "", ""
	}
	again, second := c.plan(t, config)
	if wrong := errorsOf(again.Diagnostics); wrong != "" {
		return wrong, ""
	}
	requireKept(t, planned, second, "plan")
	creates := c.state.IsNull()
	got, err := c.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{TypeName: "sluice_rollout",
		PriorState: c.value(t, c.state), PlannedState: again.PlannedState, Config: c.value(t, config), PlannedPrivate: again.PlannedPrivate})
	require.NoError(t, err)
	wrong = errorsOf(got.Diagnostics)
	c.state, err = got.NewState.Unmarshal(c.typ)
	require.NoError(t, err)
	c.tainted = creates && wrong != "" && !c.state.IsNull()
	if wrong == "" {
		require.True(t, c.state.IsFullyKnown())
		requireKept(t, second, c.state, "apply")
	}
	return wrong, said(got.Diagnostics)
}

// requireKept asserts that what was known stayed.
func requireKept(t *testing.T, planned, got tftypes.Value, at string) {
	t.Helper()
	var before, after map[string]tftypes.Value
	require.NoError(t, planned.As(&before))
	require.NoError(t, got.As(&after))
	for name, v := range before {
		if v.IsFullyKnown() {
			require.True(t, v.Equal(after[name]), "%s became %s at the %s instead of %s", name, after[name], at, v)
		}
	}
}

// rollouts are all of an endpoint.
func (e *realEngine) rollouts(t *testing.T, p pair) []api.Rollout {
	t.Helper()
	all, err := engineclient.Collect(e.client.Rollouts(t.Context(), p.endpoint, ""))
	require.NoError(t, err)
	return all
}

// requireOneThatEnded asserts what every story must end with: one rollout, in the
// state and COMPLETED, and all traffic on its target.
func (e *realEngine) requireOneThatEnded(t *testing.T, c *core, p pair) {
	t.Helper()
	all := e.rollouts(t, p)
	require.Len(t, all, 1, "one rollout")
	require.Equal(t, "COMPLETED", engineclient.Short(all[0].State))
	state := c.attributes(t)
	require.NotNil(t, state)
	require.Equal(t, all[0].ID, state["id"])
	require.Equal(t, "COMPLETED", state["state"])
	require.False(t, c.tainted)
	ep, err := e.client.GetEndpoint(t.Context(), p.endpoint)
	require.NoError(t, err)
	for _, d := range ep.Deployments {
		if d.ID == p.target {
			require.InDelta(t, 1, d.EstimatedEffectiveTrafficShare, 1e-9)
		}
	}
}
