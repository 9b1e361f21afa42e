package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var (
	_ provider.ProviderWithActions = (*sluiceProvider)(nil)
	_ action.ActionWithConfigure   = (*rolloutAction)(nil)
)

// Actions lists what Terraform 1.14 and later can invoke.
func (p *sluiceProvider) Actions(context.Context) []func() action.Action {
	out := make([]func() action.Action, 0, len(rolloutActions))
	for _, a := range rolloutActions {
		out = append(out, func() action.Action { return &rolloutAction{verb: a} })
	}
	return out
}

// verb is one action: a control and what it waits for, or a wait alone.
type verb struct {
	name  string
	sends steering
	text  string
	until []string // states, without prefix, that are the effect; nil for what the caller wants
}

var rolloutActions = []verb{
	{name: "pause", sends: sendPause, until: []string{string(rollout.Paused)},
		text: "Holds a rollout where it is and waits until it is PAUSED."},
	{name: "resume", sends: sendResume,
		text: "Lifts a rollout's park: the same step goes on, and a gate that tripped is judged again on fresh data. Returns once it is accepted; watch on with `sluice_rollout_wait`."},
	{name: "promote", sends: sendPromote,
		text: "Skips to a rollout's last step and runs that one in full. Returns once it is accepted; watch on with `sluice_rollout_wait`."},
	{name: "cancel", sends: sendCancel, until: []string{string(rollout.Canceled)},
		text: "Freezes the split as it is served and waits until the rollout is CANCELED. Final."},
	{name: "wait", sends: justWait,
		text: "Waits until a rollout is COMPLETED or parked and shows each change. Fails, without tainting anything, when it ends otherwise than wanted."},
}

// rolloutAction invokes one verb.
type rolloutAction struct {
	verb   verb
	engine *engine
}

type rolloutActionModel struct {
	EndpointID types.String
	RolloutID  types.String
	Reason     types.String
	Want       types.List
	Timeout    text
}

// Metadata names the action.
func (a *rolloutAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollout_" + a.verb.name
}

// Schema describes the action.
func (a *rolloutAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: a.verb.text + "\n\nNeeds Terraform 1.14.1 or later. An action that fails is not tried again by the next apply, and an interrupted one may end green: what must hold is the wait of the `sluice_rollout` itself, or a `sluice_rollout_gate`.",
		Attributes: map[string]schema.Attribute{
			"endpoint_id": schema.StringAttribute{Required: true, MarkdownDescription: "Endpoint of the rollout."},
			"rollout_id":  schema.StringAttribute{Required: true, MarkdownDescription: "Rollout, `rol_…`."},
		},
	}
	at := resp.Schema.Attributes
	switch a.verb.sends {
	case sendPause:
		at["reason"] = schema.StringAttribute{Optional: true, MarkdownDescription: "Why, for the event feed."}
	case sendCancel:
		at["reason"] = schema.StringAttribute{Required: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 1024)}, MarkdownDescription: "Why, for those who read the event feed later."}
	case justWait:
		names := make([]string, 0, len(rollout.States()))
		for _, s := range rollout.States() {
			names = append(names, string(s))
		}
		at["want"] = schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: "States that are a success; default `[\"COMPLETED\"]`.",
			Validators: []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(stringvalidator.OneOf(names...))}}
	case sendResume, sendPromote, nothing:
	}
	at["timeout"] = schema.StringAttribute{Optional: true, CustomType: durationType, MarkdownDescription: "How long to wait; default `2h`. " + durationSyntax}
}

// Configure takes the client.
func (a *rolloutAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	e, err := engineOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.AddError("Provider data", err.Error())
	}
	a.engine = e
}

// actionTimeout is how long an action waits when it is not told.
const actionTimeout = 2 * time.Hour

// Invoke sends the control, unless its effect is there already, and shows what
// follows.
func (a *rolloutAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	m := a.read(ctx, req, resp)
	if resp.Diagnostics.HasError() {
		return
	}
	if a.engine == nil || a.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	within := actionTimeout
	if d, err := time.ParseDuration(m.Timeout.ValueString()); err == nil {
		within = d
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	id := m.RolloutID.ValueString()
	live, err := a.engine.client.GetRollout(ctx, m.EndpointID.ValueString(), id)
	if err != nil {
		addRefusal(&resp.Diagnostics, "read rollout "+id, err)
		return
	}
	show := func(line string) { resp.SendProgress(action.InvokeProgressEvent{Message: line}) }
	if live, err = a.send(ctx, live, m, show); err != nil {
		addSteerRefusal(&resp.Diagnostics, a.verb.sends, id, err)
		return
	}
	if a.verb.until == nil && a.verb.sends != justWait {
		return
	}
	a.wait(ctx, live, m, show, resp)
}

// read takes the attributes that the verb has.
func (a *rolloutAction) read(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) rolloutActionModel {
	var m rolloutActionModel
	for name, to := range map[string]any{"endpoint_id": &m.EndpointID, "rollout_id": &m.RolloutID, "reason": &m.Reason, "want": &m.Want, "timeout": &m.Timeout} {
		if _, ok := req.Config.Schema.GetAttributes()[name]; ok {
			resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(name), to)...)
		}
	}
	return m
}

// send sends the verb's control once and shows what came of it.
func (a *rolloutAction) send(ctx context.Context, live api.Rollout, m rolloutActionModel, show func(string)) (api.Rollout, error) {
	if a.verb.sends == justWait {
		return live, nil
	}
	if a.verb.sends.isThere(live) {
		show(fmt.Sprintf("rollout %s is %s already: nothing to %s", live.ID, engineclient.Short(live.State), a.verb.name))
		return live, nil
	}
	var was rolloutModel // an action has no plan that could be old: it stands on what is now
	was.apply(live)
	after, err := (&rolloutResource{engine: a.engine}).send(ctx, a.verb.sends, was, rolloutModel{Reason: m.Reason}, live)
	if err == nil {
		show(fmt.Sprintf("%s accepted: rollout %s is %s with %d%% on the target", a.verb.name, after.ID, engineclient.Short(after.State), percentOf(after)))
	}
	return after, err
}

// wait follows the rollout to its end or park, and judges that.
func (a *rolloutAction) wait(ctx context.Context, live api.Rollout, m rolloutActionModel, show func(string), resp *action.InvokeResponse) {
	wanted := a.verb.until
	if wanted == nil {
		wanted = []string{string(rollout.Completed)}
	}
	if !m.Want.IsNull() {
		resp.Diagnostics.Append(m.Want.ElementsAs(ctx, &wanted, false)...)
	}
	to := a.engine.progressOf(ctx)
	to.shown = show
	got, err := a.engine.client.Await(ctx, live.EndpointID, live.ID, to)
	if err != nil {
		resp.Diagnostics.AddError(fmt.Sprintf("Rollout %s is not watched any longer", live.ID), render.Inert(err.Error()))
		return
	}
	state := engineclient.Short(got.Rollout.State)
	if slices.Contains(wanted, state) {
		return
	}
	detail := fmt.Sprintf("Wanted %s, found %s with %d%% on the target.", strings.Join(wanted, " or "), state, percentOf(got.Rollout))
	if park := render.ParkOf(got.Rollout, render.Options{}); park.Category != "" {
		detail += "\n\n" + park.Text()
	}
	resp.Diagnostics.AddError(fmt.Sprintf("Rollout %s is %s", live.ID, state), detail)
}
