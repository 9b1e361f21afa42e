package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

const (
	fastPoll = 250 * time.Millisecond
	slowPoll = 10 * time.Second
)

// awaitDeployment polls until a condition holds. An engine that restarts is waited
// out; the last deployment seen is returned with the error.
func (r *deploymentResource) awaitDeployment(ctx context.Context, endpoint, id string, within time.Duration, done func(api.Deployment) bool) (api.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last api.Deployment
	for pause := fastPoll; ; pause = min(pause*3/2, slowPoll) {
		d, err := r.engine.client.GetDeployment(ctx, endpoint, id)
		switch {
		case err == nil:
			if d.Status.State != last.Status.State || d.Status.ReadyReplicas != last.Status.ReadyReplicas {
				tflog.Info(ctx, fmt.Sprintf("deployment %s: %s, %d ready", id, shortEnum(prefixDeploymentState, d.Status.State), d.Status.ReadyReplicas))
			}
			last = d
			if done(d) {
				return d, nil
			}
		case ctx.Err() != nil:
			return last, ctx.Err()
		case !engineclient.IsUnreachable(err):
			return last, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return last, ctx.Err()
		case <-timer.C:
		}
	}
}

// Delete takes the deployment out of the split, stops it, lets its replicas finish
// and deletes it. A rollout that holds it is waited for while it is being canceled,
// and else named: nothing is canceled or stopped on the way.
func (r *deploymentResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	r.engine.acts()
	var m deploymentModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if r.engine.client == nil {
		notConfigured(&resp.Diagnostics)
		return
	}
	endpoint, id := m.EndpointID.ValueString(), m.ID.ValueString()
	tried := "delete deployment " + id
	_, gone, err := readTwice(ctx, r.engine.client, func() (api.Deployment, error) { return r.engine.client.GetDeployment(ctx, endpoint, id) })
	if gone {
		if err = sameProject(ctx, r.engine.client, m.QualifiedName.ValueString()); err == nil {
			return
		}
	}
	if err != nil {
		addRefusal(&resp.Diagnostics, tried, err)
		return
	}
	switch free, err := r.awaitRelease(ctx, endpoint, id); {
	case err != nil:
		addRefusal(&resp.Diagnostics, tried, err)
		return
	case !free:
		addHeld(ctx, r.engine, &resp.Diagnostics, tried, endpoint)
		return
	}
	within, diags := m.Timeouts.Delete(ctx, stoppedWithin)
	resp.Diagnostics.Append(diags...)
	if err := r.remove(ctx, endpoint, id, within); err != nil && !engineclient.IsNotFound(err) {
		if engineclient.IsConflict(err) {
			resp.Diagnostics.AddAttributeError(path.Root("id"), "Cannot "+tried, err.Error())
			return
		}
		addRefusal(&resp.Diagnostics, tried, err)
	}
}

// cancelBegins is how long a rollout's own destroy may take to begin with its cancel.
// Where the rollout's source is inferred nothing refers to this deployment, so that
// Terraform destroys both at once.
const cancelBegins = 10 * time.Second

// awaitRelease waits until no rollout needs a deployment: for a cancel to begin, and
// then for it to end. It reports false for a rollout that goes on.
func (r *deploymentResource) awaitRelease(ctx context.Context, endpoint, id string) (free bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, freezeWithin)
	defer cancel()
	patience := time.Now().Add(cancelBegins)
	for {
		holder, gone, err := readTwice(ctx, r.engine.client, func() (api.Rollout, error) { return r.holder(ctx, endpoint, id) })
		switch {
		case gone:
			return true, nil // with its endpoint
		case err != nil:
			return false, err
		case holder.ID == "":
			return true, nil
		}
		if holder.State != engineclient.StateCancelling && time.Now().After(patience) {
			return false, nil
		}
		tflog.Info(ctx, fmt.Sprintf("deployment %s waits for rollout %s, which is %s", id, holder.ID, engineclient.Short(holder.State)))
		timer := time.NewTimer(fastPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		case <-timer.C:
		}
	}
}

// holder is the endpoint's active rollout if it needs a deployment: as one of its
// sides, or since it has the lock on a split that the deployment is to leave. It has
// no id when there is none.
func (r *deploymentResource) holder(ctx context.Context, endpoint, id string) (api.Rollout, error) {
	active, found, err := r.engine.client.ActiveRollout(ctx, endpoint)
	if err != nil || !found || active.SourceDeploymentID == id || active.TargetDeploymentID == id {
		return active, err
	}
	e, err := r.engine.client.GetEndpoint(ctx, endpoint)
	if err != nil || planning.WeightIn(e.TrafficSplit, id) == 0 {
		return api.Rollout{}, err
	}
	return active, nil
}

// remove keeps the order in which no request loses its replica: out of the split,
// then drained, then gone.
func (r *deploymentResource) remove(ctx context.Context, endpoint, id string, within time.Duration) error {
	if _, err := r.engine.client.SetWeight(ctx, endpoint, id, 0); err != nil {
		return err
	}
	zero := 0
	d, err := r.engine.client.UpdateDeployment(ctx, endpoint, id, "autoscaling.minReplicas,autoscaling.maxReplicas", api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &zero, MaxReplicas: &zero}})
	if err != nil {
		return err
	}
	if d.Status.State != api.DeploymentStopped {
		if _, err := r.awaitDeployment(ctx, endpoint, id, within, func(d api.Deployment) bool {
			return d.Status.State == api.DeploymentStopped || (d.Status.State == api.DeploymentFailed && d.Status.ScheduledReplicas == 0)
		}); err != nil {
			return fmt.Errorf("its replicas have not stopped: %w", err)
		}
	}
	return r.deleteStopped(ctx, endpoint, id)
}

// deleteStopped deletes without an etag, so a refusal as stale only means that
// something else of the endpoint was written at the same instant, as when two of
// its deployments go at once.
func (r *deploymentResource) deleteStopped(ctx context.Context, endpoint, id string) error {
	for try := 1; ; try++ {
		err := r.engine.client.DeleteDeployment(ctx, endpoint, id, "")
		if !engineclient.IsStale(err) || try >= 8 {
			return err
		}
		timer := time.NewTimer(time.Duration(try) * 50 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
