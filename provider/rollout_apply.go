package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// Create adopts the endpoint's open rollout of the same spec, or makes one, saves
// it at once, starts it and waits. From the moment that the engine has accepted it
// nothing is an error any more: that would taint, and the next apply would cancel a
// healthy canary and start a second one.
func (r *rolloutResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	r.engine.acts()
	var m rolloutModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	var config rolloutModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	t, err := r.engine.timings(ctx)
	if err != nil {
		addRefusal(&resp.Diagnostics, "start a rollout", err)
		return
	}
	asked := m.specModel
	asked.SourceDeploymentID = config.SourceDeploymentID
	spec, d, diags := asked.check(t)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.Journey.IsUnknown() { // the provider's own settings were not known at plan
		m.plan(planning.NewJourney(spec, planning.Known{}, t))
	}
	if m.SpecDigest.IsUnknown() { // an id was not
		m.SpecDigest = types.StringValue(planning.Digest(spec))
	}
	live, err := r.acquire(ctx, m.EndpointID.ValueString(), d.spec, m.SpecDigest.ValueString())
	if err != nil {
		addCreateRefusal(&resp.Diagnostics, err)
		return
	}
	m.apply(live)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	live, err = r.start(ctx, live)
	switch {
	case isRefusal(err) && r.takeBack(ctx, live):
		resp.State.RemoveResource(ctx)
		addRefusal(&resp.Diagnostics, "start the rollout, and nothing was moved", err)
		return
	case err != nil:
		resp.Diagnostics.AddWarning(fmt.Sprintf("Rollout %s is made but not started", live.ID), fmt.Sprintf("%v. It is saved; the next apply starts it.", err))
	default:
		m.apply(live)
		if m.Wait.ValueBool() {
			timeout, diags := m.Timeouts.Create(ctx, waitLimit(m, live))
			resp.Diagnostics.Append(warnings(diags)...)
			r.await(ctx, &m, live, timeout, &resp.Diagnostics)
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// held is the refusal of a create because another rollout holds the endpoint.
type held struct {
	endpoint string
	by       api.Rollout
}

func (h *held) Error() string { return planning.HeldBy(h.endpoint, h.by) }

// noSource is the refusal of a create whose source cannot be inferred.
type noSource struct{ why error }

func (n *noSource) Error() string { return n.why.Error() }

func addCreateRefusal(diags *diag.Diagnostics, err error) {
	var h *held
	var n *noSource
	switch {
	case errors.As(err, &h):
		diags.AddAttributeError(path.Root("endpoint_id"), "The endpoint is held by another rollout",
			h.Error()+" Nothing was created or moved. Let it end and apply again, or cancel it: "+render.DefaultCommand(render.Cancel, h.endpoint, h.by.ID))
	case errors.As(err, &n):
		diags.AddAttributeError(path.Root("source_deployment_id"), "The source cannot be inferred", sentence(n.Error()))
	default:
		addRefusal(diags, "create the rollout", err)
	}
}

// acquire returns the rollout that a spec asks for: the open one of the same spec
// if there is one (a killed apply has left it), else a new one in PENDING.
func (r *rolloutResource) acquire(ctx context.Context, endpoint string, spec api.RolloutSpec, digest string) (api.Rollout, error) {
	adopted, history, err := r.adopt(ctx, endpoint, spec, digest)
	if err != nil || adopted.ID != "" {
		return adopted, err
	}
	ep, err := r.engine.client.GetEndpoint(ctx, endpoint)
	if err != nil {
		return api.Rollout{}, err
	}
	if ended, ok, err := r.engine.endedAs(ctx, ep, spec, digest); ok || err != nil {
		return ended, err
	}
	if spec.SourceDeploymentID == "" {
		if spec.SourceDeploymentID, err = planning.SourceIn(ep, spec.TargetDeploymentID); err != nil {
			return api.Rollout{}, &noSource{err}
		}
	}
	ours, err := r.engine.ours(ctx)
	if err != nil {
		return api.Rollout{}, err
	}
	if ours {
		spec.Sluice = signed(spec.Sluice, digest)
	}
	made, err := r.create(ctx, endpoint, spec, planning.IdempotencyKey(endpoint, digest, history+" "+ep.ETag))
	if engineclient.IsConflict(err) { // somebody was faster; it may be our own spec
		adopted, _, again := r.adopt(ctx, endpoint, spec, digest)
		if again != nil {
			return api.Rollout{}, again
		}
		if adopted.ID != "" {
			return adopted, nil
		}
	}
	return made, err
}

// endedAs finds the newest rollout of an endpoint when it is of this very spec and over
// in a way that a create must not repeat.
func (e *engine) endedAs(ctx context.Context, ep api.Endpoint, spec api.RolloutSpec, digest string) (api.Rollout, bool, error) {
	all, err := engineclient.Collect(e.client.Rollouts(ctx, ep.ID, ""))
	if err != nil {
		return api.Rollout{}, false, err
	}
	ended, ok := planning.EndedAs(ep, all, spec, digest)
	return ended, ok, nil
}

// create posts the spec. An idempotency key whose rollout was deleted since answers
// with 404; the next key is then a new start.
func (r *rolloutResource) create(ctx context.Context, endpoint string, spec api.RolloutSpec, key string) (api.Rollout, error) {
	made, err := r.engine.client.CreateRollout(ctx, endpoint, spec, key)
	for n := 2; n <= 4 && engineclient.IsNotFound(err); n++ {
		if _, gone := r.engine.client.GetEndpoint(ctx, endpoint); gone != nil {
			return made, err
		}
		made, err = r.engine.client.CreateRollout(ctx, endpoint, spec, fmt.Sprintf("%s-%d", key, n))
	}
	return made, err
}

// adopt finds the endpoint's open rollout. One of another spec is *held; without
// one, history names what came before. With the endpoint's etag, which every rollout
// changes, it tells a deliberate new start of an old spec from a repeated request.
func (r *rolloutResource) adopt(ctx context.Context, endpoint string, spec api.RolloutSpec, digest string) (api.Rollout, string, error) {
	newest := ""
	for live, err := range r.engine.client.Rollouts(ctx, endpoint, "") {
		if err != nil {
			return api.Rollout{}, "", err
		}
		if !engineclient.Terminal(live.State) {
			if planning.SameRollout(live, spec, digest) {
				tflog.Info(ctx, fmt.Sprintf("rollout %s of the same spec is %s: adopting it", live.ID, engineclient.Short(live.State)))
				return live, "", nil
			}
			return api.Rollout{}, "", &held{endpoint: endpoint, by: live}
		}
		newest = max(newest, live.CreatedAt.UTC().Format(time.RFC3339Nano)+" "+live.ID)
	}
	return api.Rollout{}, newest, nil
}

// start starts a PENDING rollout; any other is left as it is.
func (r *rolloutResource) start(ctx context.Context, live api.Rollout) (api.Rollout, error) {
	if live.State != engineclient.StatePending {
		return live, nil
	}
	started, err := r.engine.client.StartRollout(ctx, live.EndpointID, live.ID)
	if err != nil {
		return live, err
	}
	return started, nil
}

// isRefusal reports whether an engine has decided against a call, as opposed to not
// having answered it.
func isRefusal(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Status >= 400 && refused.Status < 500 && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout
}

// takeBack deletes a rollout whose start was refused, so that it does not hold the
// endpoint; it reports whether that worked.
func (r *rolloutResource) takeBack(ctx context.Context, live api.Rollout) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := r.engine.client.DeleteRollout(ctx, live.EndpointID, live.ID, "")
	return err == nil || engineclient.IsNotFound(err)
}

// Update steers and waits on: for a rollout that the state has and that is not over.
// An error here never taints, and the prior state stays, so that a control which was
// not sent is planned again.
func (r *rolloutResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	r.engine.acts()
	var m, was rolloutModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &was)...)
	resp.Diagnostics.Append(identify(ctx, r.engine, resp.Identity, m.ids())...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !m.State.IsUnknown() { // only settings of this door have changed
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	live, err := r.engine.client.GetRollout(ctx, m.EndpointID.ValueString(), m.ID.ValueString())
	if err == nil {
		live, err = r.start(ctx, live)
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "wait for rollout "+m.ID.ValueString(), err)
		return
	}
	what, refused := steer(was, m)
	if refused != "" { // a value that was not known at plan
		resp.Diagnostics.AddAttributeError(path.Root("desired_state"), fmt.Sprintf("Rollout %s cannot be steered to that", live.ID), refused)
		return
	}
	if live, err = r.send(ctx, what, was, m, live); err != nil {
		addSteerRefusal(&resp.Diagnostics, what, live.ID, err)
		return
	}
	inEffect := m.InEffect
	m.Drift = was.Drift // whose event is known
	m.apply(live)
	if m.Wait.ValueBool() || what == sendPause || what == sendCancel { // whose effects are there at once
		timeout, diags := m.Timeouts.Update(ctx, waitLimit(m, live))
		resp.Diagnostics.Append(warnings(diags)...)
		r.await(ctx, &m, live, timeout, &resp.Diagnostics)
	}
	if !inEffect.IsUnknown() {
		m.InEffect = inEffect
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// waitLimit is the default time to wait: the one that the plan shows, or what the
// engine's own ladder asks for where that is longer, as of a rolling swap whose size
// was not known.
func waitLimit(m rolloutModel, live api.Rollout) time.Duration {
	planned, ok := m.Facts.Attributes()["wait_limit_seconds"].(types.Float64)
	if !ok {
		return waitFor(live)
	}
	return max(time.Duration(planned.ValueFloat64()*float64(time.Second)), waitFor(live))
}

// waitFor is one and a half times the waits of all steps, and half an hour for cold
// starts.
func waitFor(r api.Rollout) time.Duration {
	step := 5 * time.Minute
	if r.Sluice != nil && r.Sluice.Soak != nil {
		step = time.Duration(*r.Sluice.Soak) + time.Minute
	}
	return time.Duration(max(1, r.Status.TotalSteps))*step*3/2 + 30*time.Minute
}

// warnings turns errors into warnings, for use after the engine has accepted.
func warnings(in diag.Diagnostics) diag.Diagnostics {
	var out diag.Diagnostics
	for _, d := range in {
		out.AddWarning(d.Summary(), d.Detail())
	}
	return out
}

// Delete deletes the record of a rollout that is over or never started. One that is
// under way is refused with its name, unless destroy_behavior says cancel.
func (r *rolloutResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	r.engine.acts()
	var m rolloutModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	endpoint, id := m.EndpointID.ValueString(), m.ID.ValueString()
	live, gone, err := readTwice(ctx, r.engine.client, func() (api.Rollout, error) { return r.engine.client.GetRollout(ctx, endpoint, id) })
	if gone {
		return
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, "destroy rollout "+id, err)
		return
	}
	if !engineclient.Terminal(live.State) && live.State != engineclient.StatePending {
		if m.DestroyBehavior.ValueString() != destroyCancel {
			resp.Diagnostics.AddError("Rollout "+id+" is under way and is not destroyed",
				planning.HeldBy(endpoint, live)+" Nothing was changed. Let it end, or cancel it: "+render.DefaultCommand(render.Cancel, endpoint, id)+
					". With destroy_behavior = \"cancel\", applied first, a destroy cancels it.")
			return
		}
		if err := r.cancel(ctx, m, live); err != nil {
			addRefusal(&resp.Diagnostics, "cancel rollout "+id, err)
			return
		}
	}
	if err := r.engine.client.DeleteRollout(ctx, endpoint, id, ""); err != nil && !engineclient.IsNotFound(err) {
		addRefusal(&resp.Diagnostics, "delete the record of rollout "+id, err)
	}
}

// freezeWithin is how long a cancel may take by default; it takes a second.
const freezeWithin = 5 * time.Minute

func (r *rolloutResource) cancel(ctx context.Context, m rolloutModel, live api.Rollout) error {
	within, _ := m.Timeouts.Delete(ctx, freezeWithin)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if live.State != engineclient.StateCancelling {
		if _, err := r.engine.client.CancelRollout(ctx, live.EndpointID, live.ID, api.Control{Reason: "destroyed by Terraform with destroy_behavior = cancel"}); err != nil {
			return err
		}
	}
	got, err := r.engine.client.Await(ctx, live.EndpointID, live.ID, r.engine.progressOf(ctx))
	if err != nil {
		return err
	}
	if got.Outcome == engineclient.WasParked {
		return fmt.Errorf("rollout %s is %s after its cancel was accepted; read it and try again", live.ID, engineclient.Short(got.Rollout.State))
	}
	return nil
}
