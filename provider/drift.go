package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Kinds of drift under a rollout that is not over. A finished one has none: what
// becomes of its split later is another decision.
const (
	driftBreakGlass = "break_glass" // a person broke the lock of the split
	driftHostedEdit = "hosted_edit" // the split was edited at an engine that has no such thing
	driftBounds     = "bounds"      // a person changed replica bounds of the pair
)

// sameShare is how far, in percent points, a share may be off what is set before it
// is an edit: a split of weights a replica moves a little with the replicas.
const sameShare = 5

var driftType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"detected": types.BoolType, "kind": types.StringType, "set_percent": types.Int64Type, "actual_percent": types.Int64Type,
	"by": types.StringType, "reason": types.StringType, "at": types.StringType, "event_id": types.StringType,
	"deployment_id": types.StringType, "kept": types.StringType,
}}

func driftSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: "What a person changed under the rollout while it is not over. A plan then proposes an update in place, so that somebody looks; its apply waits as ever and fights nothing.", Attributes: map[string]schema.Attribute{
		"detected":       schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether there is any."},
		"kind":           schema.StringAttribute{Computed: true, MarkdownDescription: "`break_glass`: somebody broke the lock of the split; `hosted_edit`: the split was edited at an engine that records no such thing; `bounds`: somebody changed replica bounds of the pair; null when there is none."},
		"set_percent":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent of the pair on the target that the rollout had set; null for bounds."},
		"actual_percent": schema.Int64Attribute{Computed: true, MarkdownDescription: "Percent that is served; null for bounds."},
		"by":             schema.StringAttribute{Computed: true, MarkdownDescription: "Who, by the name of the key; null when the engine does not tell."},
		"reason":         schema.StringAttribute{Computed: true, MarkdownDescription: "Why, as given; for bounds what was changed."},
		"at":             schema.StringAttribute{Computed: true, MarkdownDescription: "When, RFC 3339."},
		"event_id":       schema.StringAttribute{Computed: true, MarkdownDescription: "The event that tells it, see `sluice_events`."},
		"deployment_id":  schema.StringAttribute{Computed: true, MarkdownDescription: "Deployment whose bounds were changed."},
		"kept":           schema.StringAttribute{Computed: true, MarkdownDescription: "What is above its floor without an edit: raised by the autoscaler, which is no drift and is kept."},
	}}
}

// drift is what stands in the attribute.
type drift struct {
	kind, by, reason, at, event, deployment, kept string
	set, actual                                   *int
}

func (d drift) value() types.Object {
	return types.ObjectValueMust(driftType.AttrTypes, map[string]attr.Value{
		"detected": types.BoolValue(d.kind != ""), "kind": optionalString(d.kind), "set_percent": optionalInt(d.set), "actual_percent": optionalInt(d.actual),
		"by": optionalString(d.by), "reason": optionalString(d.reason), "at": optionalString(d.at), "event_id": optionalString(d.event),
		"deployment_id": optionalString(d.deployment), "kept": optionalString(d.kept),
	})
}

// toldDrift is the drift that a rollout tells by itself. The event of it is that of
// prior where it is the same one.
func toldDrift(r api.Rollout, prior types.Object) types.Object {
	d := drift{}
	if x := r.Sluice; x != nil && x.Drift != nil && !engineclient.Terminal(r.State) {
		d = drift{kind: driftBreakGlass, by: x.Drift.By, reason: x.Drift.Reason, at: x.Drift.At.UTC().Format(time.RFC3339), set: &x.Drift.SetPercent, actual: &x.Drift.ActualPercent}
		if known := prior.Attributes(); known["at"] != nil && known["at"].Equal(types.StringValue(d.at)) {
			d.event = stringAt(prior, "event_id").ValueString()
		}
	}
	return d.value()
}

// driftOf looks for drift under a live rollout: what it tells by itself with the event
// of it, then a split that differs from what is set, then bounds that somebody changed.
// It costs one call or two, and only for a rollout that is not over: one an endpoint.
// What cannot be read is no drift.
func (e *engine) driftOf(ctx context.Context, r api.Rollout) (types.Object, error) {
	found := toldDrift(r, types.ObjectNull(driftType.AttrTypes))
	if engineclient.Terminal(r.State) || r.StartedAt == nil {
		return found, nil
	}
	if isTrue(found, "detected") {
		ev, err := e.newestEvent(ctx, r.EndpointID, engineclient.EventQuery{Types: []string{string(rollout.EventBreakGlass)}, SubjectID: r.ID}, func(api.Event) bool { return true })
		attributes := found.Attributes()
		attributes["event_id"] = optionalString(ev.ID)
		return types.ObjectValueMust(driftType.AttrTypes, attributes), err
	}
	ep, err := e.seen.endpoint(ctx, e.client, r.EndpointID)
	if err != nil {
		return found, err
	}
	d, err := e.editedSplit(ctx, r, ep)
	if err == nil && d.kind == "" {
		d, err = e.editedBounds(ctx, r, ep)
	}
	return d.value(), err
}

// editedSplit compares the pair's share of an engine that records no break-glass with
// what its rollout says, and finds the edit that explains a difference.
func (e *engine) editedSplit(ctx context.Context, r api.Rollout, ep api.Endpoint) (drift, error) {
	if r.Sluice != nil || r.CurrentTrafficPercent == nil {
		return drift{}, nil
	}
	percent, known := pairPercent(ep, r.SourceDeploymentID, r.TargetDeploymentID)
	if !known || near(percent, *r.CurrentTrafficPercent) || slices.ContainsFunc(r.Status.Steps, func(st api.RolloutStep) bool { return near(percent, st.TargetTrafficPercent) }) {
		return drift{}, nil
	}
	ev, err := e.newestEvent(ctx, ep.ID, engineclient.EventQuery{Types: []string{"endpoint.updated"}, Since: r.StartedAt.Time}, func(ev api.Event) bool {
		return slices.ContainsFunc(ev.Paths, func(p string) bool { return strings.EqualFold(strings.ReplaceAll(p, "_", ""), "trafficsplit") })
	})
	if err != nil || ev.ID == "" {
		return drift{}, err
	}
	return drift{kind: driftHostedEdit, set: r.CurrentTrafficPercent, actual: &percent, by: actorOf(ev), reason: ev.Reason, at: ev.CreatedAt.UTC().Format(time.RFC3339), event: ev.ID}, nil
}

// pairPercent is the target's part of the pair by the shares that an endpoint tells.
func pairPercent(ep api.Endpoint, source, target string) (int, bool) {
	shares := map[string]float64{}
	for _, d := range ep.Deployments {
		shares[d.ID] = d.EstimatedEffectiveTrafficShare
	}
	both := shares[source] + shares[target]
	if both <= 0 {
		return 0, false
	}
	return int(shares[target]/both*100 + 0.5), true
}

func near(a, b int) bool { return a-b <= sameShare && b-a <= sameShare }

// editedBounds finds the newest edit of the pair's bounds since the rollout began that
// still stands. Replicas above their floor without one are the autoscaler's.
func (e *engine) editedBounds(ctx context.Context, r api.Rollout, ep api.Endpoint) (drift, error) {
	d, floors := drift{}, map[string]int{}
	for _, dep := range ep.Deployments {
		if dep.ID != r.SourceDeploymentID && dep.ID != r.TargetDeploymentID || dep.Autoscaling.MinReplicas == nil {
			continue
		}
		floors[dep.ID] = *dep.Autoscaling.MinReplicas
		if dep.DesiredReplicas > floors[dep.ID] && floors[dep.ID] > 0 {
			d.kept = fmt.Sprintf("%s has %d replicas above its floor of %d: raised by the autoscaler, kept", dep.ID, dep.DesiredReplicas, floors[dep.ID])
		}
	}
	if r.Sluice == nil { // whose events name nobody
		return d, nil
	}
	ev, err := e.newestEvent(ctx, ep.ID, engineclient.EventQuery{Types: []string{"deployment.scaled"}, DeploymentIDs: []string{r.SourceDeploymentID, r.TargetDeploymentID}, Since: r.StartedAt.Time}, func(ev api.Event) bool {
		floor, known := floors[ev.DeploymentID]
		by := actorOf(ev)
		return by != "" && by != rollout.ItselfActor && known && ev.NewReplicas != nil && *ev.NewReplicas == floor
	})
	if err != nil || ev.ID == "" {
		return d, err
	}
	d.kind, d.by, d.reason, d.at, d.event, d.deployment = driftBounds, actorOf(ev), ev.Message, ev.CreatedAt.UTC().Format(time.RFC3339), ev.ID, ev.DeploymentID
	return d, nil
}

func actorOf(ev api.Event) string {
	if ev.Sluice == nil {
		return ""
	}
	return ev.Sluice.Actor
}

// newestEvent is the first event of a page that is meant; none is the zero event.
func (e *engine) newestEvent(ctx context.Context, endpoint string, q engineclient.EventQuery, meant func(api.Event) bool) (api.Event, error) {
	const page = 50
	q.PageSize = page
	n := 0
	for ev, err := range e.client.Events(ctx, endpoint, q) {
		if err != nil {
			return api.Event{}, err
		}
		if meant(ev) {
			return ev, nil
		}
		if n++; n == page {
			break
		}
	}
	return api.Event{}, nil
}

// lookForDrift writes what a refresh finds into a model, and warns of it at the
// attribute. It is the only place that does: a plan refreshes first, so that it is
// said once. -refresh-only says it too, and in an apply nothing is said again.
func (e *engine) lookForDrift(ctx context.Context, m *rolloutModel, live api.Rollout, diags *diag.Diagnostics) {
	found, err := e.driftOf(ctx, live)
	if err != nil {
		tflog.Info(ctx, "drift is not known: "+err.Error())
	}
	m.Drift = found
	if title, detail := driftText(*m); title != "" {
		diags.AddAttributeWarning(path.Root("drift"), title, detail)
	}
}

func isTrue(o types.Object, name string) bool {
	b, ok := o.Attributes()[name].(types.Bool)
	return ok && b.ValueBool()
}

// driftText says drift for a person; nothing where there is none.
func driftText(m rolloutModel) (title, detail string) {
	if !isTrue(m.Drift, "detected") {
		return "", ""
	}
	id, at := m.ID.ValueString(), stringAt(m.Drift, "at").ValueString()
	by := render.Inert(orElse(stringAt(m.Drift, "by").ValueString(), "somebody"))
	told := "At " + at + " (event " + orElse(stringAt(m.Drift, "event_id").ValueString(), "not found") + ")"
	if why := stringAt(m.Drift, "reason").ValueString(); why != "" {
		told += ": " + render.Inert(why)
	}
	told = sentence(told)
	if stringAt(m.Drift, "kind").ValueString() == driftBounds {
		return fmt.Sprintf("Drift: %s changed the replica bounds under rollout %s", by, id),
			fmt.Sprintf("%s Deployment %s. The rollout works with them; an apply waits and changes none.", told, stringAt(m.Drift, "deployment_id").ValueString())
	}
	shares := fmt.Sprintf("%s set, %s served.", percentAt(m.Drift, "set_percent"), percentAt(m.Drift, "actual_percent"))
	end := " An apply waits and does not fight it."
	if stringAt(m.Drift, "kind").ValueString() == driftBreakGlass {
		end += " To put the rollout's split back give a new resume_token; to keep what is served, desired_state = \"canceled\" with a reason."
	}
	return fmt.Sprintf("Drift: %s changed the split under rollout %s", by, id), shares + " " + told + end
}

func percentAt(o types.Object, name string) string {
	n, ok := o.Attributes()[name].(types.Int64)
	if !ok || n.IsNull() {
		return "unknown"
	}
	return fmt.Sprintf("%d %% on the target", n.ValueInt64())
}
