package reconciler

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// LookAhead asks the engine what it would make now of each rollout that a plan makes, for
// policies and for people. It is done once a plan, costs one preview a rollout and one list
// of the hardware, and nothing where a plan makes none. A rollout whose ids are not known
// yet is left without; so is one that the engine may not tell of (403 and the like). The
// error is that of an engine that fails: a plan must not be denied for want of facts then.
func LookAhead(ctx context.Context, c *engineclient.Client, changes planning.Changes) (planning.Changes, error) {
	changes.List = slices.Clone(changes.List)
	l := lookout{client: c, standing: changes.Standing}
	for i := range changes.List {
		var err error
		if changes.List[i].Ahead, err = l.look(ctx, changes.List[i]); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// lookout looks ahead for one plan.
type lookout struct {
	client   *engineclient.Client
	standing planning.Standing
	listed   bool
	hardware []api.InstanceType
}

// look is what the engine says of one change; nil where there is nothing to say.
func (l *lookout) look(ctx context.Context, c planning.Change) (*planning.Ahead, error) {
	home, ok := l.home(c)
	if !ok {
		return nil, nil //nolint:nilnil // there is nothing to tell, and nothing failed
	}
	out := &planning.Ahead{Digest: c.Digest, Spec: *c.Spec, Endpoint: home.Endpoint, Timings: l.standing.Timings}
	holder, held := home.Holder()
	if held {
		out.Holder = &holder
	}
	if out.Spec.SourceDeploymentID == "" {
		var err error
		if out.Spec.SourceDeploymentID, err = planning.SourceIn(home.Endpoint, out.Spec.TargetDeploymentID); err != nil {
			out.Refused = render.Inert(err.Error())
			return out, nil
		}
	}
	if held && holder.SourceDeploymentID == out.Spec.SourceDeploymentID && holder.TargetDeploymentID == out.Spec.TargetDeploymentID {
		told := planning.DriftTold(holder)
		out.Drift = &told
	}
	var err error
	var refused *api.Error
	out.Preview, err = l.client.PreviewRollout(ctx, home.ID, out.Spec)
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusBadRequest:
		out.Refused = render.Inert(refused.Message)
		return out, nil
	case refused != nil && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests:
		return nil, nil //nolint:nilnil // the engine does not tell this key
	case err != nil:
		return nil, err
	}
	return l.pair(ctx, out, home)
}

// home is the endpoint of a rollout of which an engine can say something.
func (l *lookout) home(c planning.Change) (planning.StandingEndpoint, bool) {
	i := slices.IndexFunc(l.standing.Endpoints, func(e planning.StandingEndpoint) bool { return e.ID == c.EndpointID })
	if !c.Makes() || c.Spec == nil || c.Digest == "" || i < 0 {
		return planning.StandingEndpoint{}, false
	}
	return l.standing.Endpoints[i], true
}

// pair adds both sides as they stand, with their hardware, best effort: a hosted engine
// may not let every key list it.
func (l *lookout) pair(ctx context.Context, a *planning.Ahead, home planning.StandingEndpoint) (*planning.Ahead, error) {
	for i, id := range []string{a.Spec.SourceDeploymentID, a.Spec.TargetDeploymentID} {
		for _, d := range home.All {
			if d.ID == id {
				a.Pair[i].Deployment = d
			}
		}
	}
	if !l.listed {
		var err error
		if l.hardware, err = engineclient.Collect(l.client.Hardware(ctx)); err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.listed = true
	}
	a.On(l.hardware)
	return a, nil
}
