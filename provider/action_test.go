package provider

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// invoke validates, plans and invokes an action as Terraform 1.14 does, and returns
// the lines that it shows and its errors.
func (c *core) invoke(t *testing.T, name string, config map[string]any) (shown []string, wrong string) {
	t.Helper()
	full := "sluice_rollout_" + name
	require.Contains(t, c.schema.ActionSchemas, full)
	d := dynamic(t, c.schema.ActionSchemas[full].Schema.ValueType(), config)
	actions, ok := c.ProviderServer.(tfprotov6.ActionServer)
	require.True(t, ok)
	checked, err := actions.ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: full, Config: d})
	require.NoError(t, err)
	if wrong := errorsOf(checked.Diagnostics); wrong != "" {
		return nil, wrong
	}
	planned, err := actions.PlanAction(t.Context(), &tfprotov6.PlanActionRequest{ActionType: full, Config: d})
	require.NoError(t, err)
	require.Empty(t, errorsOf(planned.Diagnostics))
	stream, err := actions.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: full, Config: d})
	require.NoError(t, err)
	completed := 0
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			shown = append(shown, e.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			completed++
			wrong = errorsOf(e.Diagnostics)
		}
	}
	require.Equal(t, 1, completed)
	return shown, wrong
}

// Pause, resume, promote, wait and cancel as actions, each with lines that tell a
// person what happens, each harmless when its effect is there already.
func TestActionsSteerARolloutAndShowWhatHappens(t *testing.T) {
	t.Parallel()
	e := startReal(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	c, wrong := newCore(t, e.APIURL, e.key(t), nil)
	require.Empty(t, wrong)
	start := func() (map[string]any, pair) {
		house := e.pair(t)
		asked := house.spec(map[string]any{"wait": false})
		asked["canary"].(map[string]any)["step_interval"] = "1h"
		c.state = asTerraform(t, c.typ, nil)
		wrong, _ := c.apply(t, asked)
		require.Empty(t, wrong)
		return map[string]any{"endpoint_id": house.endpoint, "rollout_id": c.attributes(t)["id"].(string)}, house
	}
	with := func(at map[string]any, name string, value any) map[string]any {
		return map[string]any{"endpoint_id": at["endpoint_id"], "rollout_id": at["rollout_id"], name: value}
	}
	at, house := start()
	id := at["rollout_id"].(string)

	shown, wrong := c.invoke(t, "pause", with(at, "reason", "lunch"))
	require.Empty(t, wrong)
	require.Contains(t, shown[0], "pause accepted: rollout "+id)
	require.Contains(t, shown[len(shown)-1], "PAUSED")
	shown, wrong = c.invoke(t, "pause", at)
	require.Empty(t, wrong)
	require.Contains(t, shown[0], "is PAUSED already: nothing to pause")

	_, wrong = c.invoke(t, "wait", at)
	require.Contains(t, wrong, "is PAUSED")
	require.Contains(t, wrong, "Three ways on")
	_, wrong = c.invoke(t, "wait", with(at, "want", []any{"PAUSED", "COMPLETED"}))
	require.Empty(t, wrong)
	_, wrong = c.invoke(t, "wait", with(at, "want", []any{"DONE"}))
	require.Contains(t, wrong, "DONE")

	shown, wrong = c.invoke(t, "resume", at)
	require.Empty(t, wrong)
	require.Contains(t, shown[0], "resume accepted")
	shown, wrong = c.invoke(t, "promote", at)
	require.Empty(t, wrong)
	require.Contains(t, strings.Join(shown, "\n"), "promote accepted")

	_, wrong = c.invoke(t, "wait", with(at, "timeout", "100ms"))
	require.Contains(t, wrong, "the rollout goes on at the engine")

	_, wrong = c.invoke(t, "cancel", with(at, "reason", "not today"))
	require.Empty(t, wrong)
	r, err := e.client.GetRollout(t.Context(), house.endpoint, id)
	require.NoError(t, err)
	require.Equal(t, "CANCELED", engineclient.Short(r.State))
	_, wrong = c.invoke(t, "cancel", with(at, "reason", "not today"))
	require.Empty(t, wrong, "its effect is there")
	_, wrong = c.invoke(t, "resume", at)
	require.Contains(t, wrong, "it is over: CANCELED")
	_, wrong = c.invoke(t, "wait", map[string]any{"endpoint_id": house.endpoint, "rollout_id": "rol_none"})
	require.Contains(t, wrong, "rol_none")
}

// A wait of an action shows every change of a rollout that runs.
func TestAWaitingActionShowsEachStep(t *testing.T) {
	t.Parallel()
	e := startReal(t, t.TempDir(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, e.Stop(context.WithoutCancel(t.Context()))) })
	c, wrong := newCore(t, e.APIURL, e.key(t), nil)
	require.Empty(t, wrong)
	house := e.pair(t)
	r, err := e.client.CreateRollout(t.Context(), house.endpoint, api.RolloutSpec{SourceDeploymentID: house.source, TargetDeploymentID: house.target, Canary: &api.Canary{Steps: []api.CanaryStep{{Traffic: 50}, {Traffic: 100}}}}, "")
	require.NoError(t, err)
	_, err = e.client.StartRollout(t.Context(), house.endpoint, r.ID)
	require.NoError(t, err)
	shown, wrong := c.invoke(t, "wait", map[string]any{"endpoint_id": house.endpoint, "rollout_id": r.ID})
	require.Empty(t, wrong)
	text := strings.Join(shown, "\n")
	require.Contains(t, text, "step 1 of 2, 50% on the target")
	require.Contains(t, text, "step 2 of 2, 100% on the target")
	require.Contains(t, shown[len(shown)-1], "COMPLETED")
}

func TestActionSchemasAreValidAndDescribed(t *testing.T) {
	for _, newAction := range (&sluiceProvider{}).Actions(t.Context()) {
		var resp action.SchemaResponse
		newAction().Schema(t.Context(), action.SchemaRequest{}, &resp)
		require.Empty(t, resp.Schema.ValidateImplementation(t.Context()))
		for name, a := range resp.Schema.Attributes {
			require.NotEmpty(t, a.GetMarkdownDescription(), name)
		}
	}
}
