package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// Read refreshes the split. While a rollout is active the split is on its way, and
// that is the rollout's affair: the state keeps what it has. A split that has changed
// is noted with its cause, if that is a finished rollout.
func (r *splitResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m splitModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() || r.engine.client == nil {
		return
	}
	endpoint := m.EndpointID.ValueString()
	ep, gone, err := readTwice(ctx, r.engine.client, func() (api.Endpoint, error) { return r.engine.client.GetEndpoint(ctx, endpoint) })
	if gone {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "read endpoint "+endpoint, err)
		return
	}
	live := liveWeights(ep)
	imported := m.Weights.IsNull()
	if !imported && (ep.ActiveRolloutID != "" || sameWeights(live, weightsOf(m.Weights))) {
		return
	}
	kept, diags := readWritten(ctx, resp.Private)
	resp.Diagnostics.Append(diags...)
	if !imported {
		cause, err := r.engine.causeOf(ctx, endpoint, kept.Seen.Time)
		if err != nil {
			addRefusal(&resp.Diagnostics, "read who changed the split of endpoint "+endpoint, err)
			return
		}
		if m.MovedBy = optionalString(cause.rollout); cause.at.After(ep.UpdatedAt.Time) {
			ep.UpdatedAt = api.At(cause.at)
		}
	}
	m.Weights, kept.Seen = weightsValue(live), ep.UpdatedAt
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	resp.Diagnostics.Append(keepWritten(ctx, resp.Private, kept)...)
}

// cause is what changed a split last: a rollout that is over, or an edit.
type cause struct {
	rollout string // id; empty for an edit, or when nothing is known
	edit    *api.Event
	at      time.Time
}

// causeOf looks for the newest change of a split after an instant. It costs two
// calls, and is asked only about a split that has changed.
func (e *engine) causeOf(ctx context.Context, endpoint string, after time.Time) (cause, error) {
	var c cause
	for r, err := range e.client.Rollouts(ctx, endpoint, "") {
		if err != nil {
			return c, err
		}
		if engineclient.Terminal(r.State) && r.StartedAt != nil && r.CompletedAt != nil && r.CompletedAt.After(after) && r.CompletedAt.After(c.at) {
			c.rollout, c.at = r.ID, r.CompletedAt.Time
		}
	}
	for ev, err := range e.client.Events(ctx, endpoint, engineclient.EventQuery{Types: []string{"endpoint.updated"}, Since: after, PageSize: defaultEvents}) {
		if err != nil {
			return c, err
		}
		if !slices.Contains(ev.Paths, "trafficSplit") {
			continue
		}
		if ev.CreatedAt.After(after) && ev.CreatedAt.After(c.at) {
			c = cause{edit: &ev, at: ev.CreatedAt.Time}
		}
		break // newest first
	}
	return c, nil
}

// text tells who changed the split and when.
func (c cause) text() string {
	if c.edit == nil {
		return "The engine does not tell who changed it."
	}
	who := "somebody"
	if x := c.edit.Sluice; x != nil && x.Actor != "" {
		who = fmt.Sprintf("the key %q", render.Inert(x.Actor))
	}
	return fmt.Sprintf("It was changed by %s at %s (event %s).", who, c.at.UTC().Format(time.RFC3339), c.edit.ID)
}

// ModifyPlan says what a change of the split means, and refuses one that would fight
// a rollout. It writes nothing into the plan that follows a live fact.
func (r *splitResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.engine == nil {
		return
	}
	var plan, state splitModel
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}
	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.AddWarning("The split of endpoint "+state.EndpointID.ValueString()+" stays as it is",
			fmt.Sprintf("Destroying a sluice_traffic_split forgets it. The endpoint goes on serving with %s.", weightsText(weightsOf(state.Weights))))
		return
	}
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	p := splitPlanner{engine: r.engine, resp: resp, plan: plan, state: state}
	p.fresh = req.State.Raw.IsNull() || !plan.EndpointID.Equal(state.EndpointID)
	if !p.fresh {
		kept, diags := readWritten(ctx, req.Private)
		resp.Diagnostics.Append(diags...)
		p.kept = kept
	}
	p.run(ctx)
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &p.plan)...)
	}
}

// splitPlanner carries one plan while it is made; fresh is a split that the state
// does not have.
type splitPlanner struct {
	engine      *engine
	resp        *resource.ModifyPlanResponse
	plan, state splitModel
	kept        written
	fresh       bool
}

func (p *splitPlanner) run(ctx context.Context) {
	p.plan.MovedBy = types.StringNull()
	if p.plan.EndpointID.IsUnknown() || p.plan.Weights.IsUnknown() {
		return
	}
	for _, w := range p.plan.Weights.Elements() {
		if w.IsUnknown() {
			return
		}
	}
	wanted := weightsOf(p.plan.Weights)
	if !p.fresh && sameWeights(wanted, weightsOf(p.state.Weights)) {
		p.plan.Weights = p.state.Weights // in its spelling: a weight of 0 is equal to absent
		return
	}
	if p.engine.client == nil {
		return
	}
	endpoint := p.plan.EndpointID.ValueString()
	ep, err := p.engine.client.GetEndpoint(ctx, endpoint)
	switch {
	case err != nil:
		addRefusal(&p.resp.Diagnostics, "read endpoint "+endpoint, err)
	case sameWeights(wanted, liveWeights(ep)):
	case ep.ActiveRolloutID != "":
		p.held(ctx, endpoint)
	default:
		p.change(ctx, ep, wanted)
	}
}

// held refuses a change while a rollout holds the lock, naming it.
func (p *splitPlanner) held(ctx context.Context, endpoint string) {
	holder, found, err := p.engine.client.ActiveRollout(ctx, endpoint)
	if err != nil || !found {
		addHeld(ctx, p.engine, &p.resp.Diagnostics, "plan a split for endpoint "+endpoint, endpoint)
		return
	}
	p.resp.Diagnostics.AddAttributeError(path.Root("weights"), "The split is locked by rollout "+holder.ID,
		planning.HeldBy(endpoint, holder)+" It moves this split. Let it end, or cancel it, and plan again: "+render.DefaultCommand(render.Cancel, endpoint, holder.ID))
}

// change refuses to undo a finished rollout, and warns of what takes effect at once.
func (p *splitPlanner) change(ctx context.Context, ep api.Endpoint, wanted map[string]float64) {
	unchanged := !p.fresh && p.kept.Weights != nil && sameWeights(p.kept.Weights, wanted)
	mover := p.state.MovedBy.ValueString()
	live := weightsText(liveWeights(ep))
	switch {
	case unchanged && mover != "" && !p.plan.Reassert.ValueBool():
		p.resp.Diagnostics.AddAttributeError(path.Root("weights"), "Rollout "+mover+" has moved the split since this was applied",
			fmt.Sprintf("The configuration still has the split from before it, and is not written over what a rollout has reached. To accept what serves, write\n\n  weights = %s\n\n"+
				"or take the resource out. To put the old split back on purpose, at once and without gates, set reassert = true for one apply.", live))
	case unchanged && mover != "":
		p.resp.Diagnostics.AddAttributeWarning(path.Root("reassert"), "What rollout "+mover+" reached is undone",
			fmt.Sprintf("The split goes from %s to %s at once, without gates. Take reassert out afterwards.", live, weightsText(wanted)))
	case unchanged:
		c, err := p.engine.causeOf(ctx, ep.ID, p.kept.Seen.Add(-time.Second))
		if err != nil {
			addRefusal(&p.resp.Diagnostics, "read who changed the split of endpoint "+ep.ID, err)
			return
		}
		p.resp.Diagnostics.AddAttributeWarning(path.Root("weights"), "The split was changed outside of Terraform",
			fmt.Sprintf("%s It serves %s now; the apply puts the configured weights back at once. To keep it, write\n\n  weights = %s", c.text(), servedText(ep), live))
	default:
		p.resp.Diagnostics.AddAttributeWarning(path.Root("weights"), "The split changes at once",
			fmt.Sprintf("It goes from %s to %s without steps or gates. To move traffic with them, use a sluice_rollout.", live, weightsText(wanted)))
	}
}

func sameWeights(a, b map[string]float64) bool {
	zero := func(_ string, w float64) bool { return w == 0 }
	a, b = maps.Clone(a), maps.Clone(b)
	maps.DeleteFunc(a, zero)
	maps.DeleteFunc(b, zero)
	return maps.Equal(a, b)
}

// weightsText is a split as HCL has it, in the order of ids.
func weightsText(weights map[string]float64) string {
	parts := make([]string, 0, len(weights))
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		parts = append(parts, fmt.Sprintf("%q = %g", id, weights[id]))
	}
	if len(parts) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// servedText is what each deployment with a weight gets of the traffic, by name: "qwen25
// 25 %, qwen35 75 %". One that the endpoint does not list goes by its id.
func servedText(ep api.Endpoint) string {
	parts := make([]string, 0, len(ep.TrafficSplit))
	for id := range maps.Keys(liveWeights(ep)) {
		part := id
		for _, d := range ep.Deployments {
			if d.ID == id {
				part = fmt.Sprintf("%s %.0f %%", render.Inert(d.Name[strings.LastIndex(d.Name, "/")+1:]), d.EstimatedEffectiveTrafficShare*100)
			}
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// splitOf is a split for the wire, in the order of ids.
func splitOf(weights map[string]float64) []api.TrafficWeight {
	out := make([]api.TrafficWeight, 0, len(weights))
	for _, id := range slices.Sorted(maps.Keys(weights)) {
		out = append(out, api.TrafficWeight{DeploymentID: id, Weight: weights[id]})
	}
	return out
}
