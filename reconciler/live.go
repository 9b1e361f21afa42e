package reconciler

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// ReadStanding reads what a set needs to be compared: the list of endpoints, and of those
// that the set or its bindings name every deployment and rollout.
func ReadStanding(ctx context.Context, c *engineclient.Client, set declaration.Set, bound planning.Bindings) (planning.Standing, error) {
	l := NewLive(c)
	if err := l.Refresh(ctx); err != nil {
		return planning.Standing{}, err
	}
	return l.Standing(ctx, set, bound)
}

// Live reads what stands for many stacks. Refresh lists the endpoints once a pass; what
// an endpoint has is read when a stack needs it, and kept until the endpoint changes. It
// is not safe for concurrent use.
//
// An endpoint's etag changes when a rollout of it is made, shifts traffic or ends, and
// when a deployment is deleted; its list entry shows its deployments with bounds and
// state. It does not change when a rollout under way goes from one state to the next, nor
// when the record of one that is over is deleted. So an open rollout is read each time,
// and all of an endpoint again after KeepFor. An engine that is not ours is not known to
// keep to this: of it nothing is kept.
type Live struct {
	KeepFor time.Duration // default DefaultKeepFor

	client *engineclient.Client
	now    func() time.Time
	who    api.WhoAmI
	listed []api.Endpoint
	kept   map[string]details
}

// DefaultKeepFor is how long what an unchanged endpoint has may be kept. It bounds how
// late the deletion of a finished rollout's record is seen.
const DefaultKeepFor = 15 * time.Minute

type details struct {
	etag        string
	at          time.Time
	deployments []api.Deployment
	rollouts    []api.Rollout
}

// NewLive starts with nothing read.
func NewLive(c *engineclient.Client) *Live {
	return &Live{KeepFor: DefaultKeepFor, client: c, now: time.Now, kept: map[string]details{}}
}

// Forget makes the next Standing read an endpoint anew.
func (l *Live) Forget(endpointID string) { delete(l.kept, endpointID) }

// Refresh lists the project's endpoints, one call for each 500. The first one also asks
// whether this is the engine and the project that are meant: at another one everything
// would read like deleted.
func (l *Live) Refresh(ctx context.Context) error {
	if l.listed == nil {
		if err := l.client.Verify(ctx); err != nil {
			return err
		}
	}
	who, err := l.client.WhoAmI(ctx)
	if err != nil {
		return err
	}
	listed, err := engineclient.Collect(l.client.Endpoints(ctx, engineclient.ListOptions{PageSize: api.MaxPageSize}))
	if err != nil {
		return err
	}
	if l.who, l.listed = who, listed; l.listed == nil {
		l.listed = []api.Endpoint{}
	}
	there := map[string]bool{}
	for _, e := range listed {
		there[e.ID] = true
	}
	maps.DeleteFunc(l.kept, func(id string, _ details) bool { return !there[id] })
	return nil
}

// Endpoints are those of the last Refresh, without what they have.
func (l *Live) Endpoints() []api.Endpoint { return l.listed }

// Timings are the waits that the engine runs by: its own when it tells them, else the
// published ones.
func (l *Live) Timings() rollout.Timings {
	if x := l.who.Sluice; x != nil && x.Timings != nil {
		return wire.TimingsFromAPI(*x.Timings)
	}
	return rollout.DefaultTimings()
}

// Standing is what stands for one set, as of the last Refresh.
func (l *Live) Standing(ctx context.Context, set declaration.Set, bound planning.Bindings) (planning.Standing, error) {
	out := planning.Standing{ProjectID: l.who.ProjectID, Slug: l.who.ProjectSlug, Timings: l.Timings()}
	if x := l.who.Sluice; x != nil {
		out.Ours, out.Capabilities = true, x.Capabilities
	}
	wanted := wantedBy(set, bound)
	for _, e := range l.listed {
		if !wanted.has(e) {
			continue
		}
		d, err := l.details(ctx, e)
		if err != nil {
			return planning.Standing{}, err
		}
		out.Endpoints = append(out.Endpoints, planning.StandingEndpoint{Endpoint: e, All: d.deployments, Rollouts: d.rollouts, Owner: ownerOf(e)})
	}
	return out, nil
}

// ownerOf is who reconciles an endpoint; empty for nobody. Whoever is that owner clears it
// from the standing (see Past.Sees).
func ownerOf(e api.Endpoint) string {
	if e.Sluice == nil || e.Sluice.Owner == nil {
		return ""
	}
	return e.Sluice.Owner.ID
}

// wanted are the endpoints that a set is about, by name and by the id of the endpoint, of
// a deployment or of a rollout on it.
type wanted struct{ names, ids map[string]bool }

func wantedBy(set declaration.Set, bound planning.Bindings) wanted {
	w := wanted{names: map[string]bool{}, ids: map[string]bool{}}
	for _, id := range bound {
		w.ids[id] = true
	}
	for _, e := range set.Endpoints {
		w.names[planning.BareName(e.Name.Value)] = !e.Name.Unknown
	}
	for _, d := range set.Deployments {
		w.ids[d.Endpoint.ID] = true
	}
	for _, r := range set.Rollouts {
		w.ids[r.Endpoint.ID] = true
	}
	return w
}

func (w wanted) has(e api.Endpoint) bool {
	if w.names[planning.BareName(e.Name)] || w.ids[e.ID] || e.ActiveRolloutID != "" && w.ids[e.ActiveRolloutID] {
		return true
	}
	return slices.ContainsFunc(e.Deployments, func(d api.DeploymentSummary) bool { return w.ids[d.ID] })
}

// shownDeployments is how many deployments an entry of the list shows at most.
const shownDeployments = 10

// details are an endpoint's deployments and rollouts, from the last reading where that
// still holds.
func (l *Live) details(ctx context.Context, e api.Endpoint) (details, error) {
	d, ok := l.kept[e.ID]
	if ok && l.who.Sluice != nil && d.etag == e.ETag && l.now().Sub(d.at) < l.KeepFor && sameDeployments(d.deployments, e.Deployments) {
		return l.renewed(ctx, e, d)
	}
	delete(l.kept, e.ID)
	var err error
	if d.deployments, err = engineclient.Collect(l.client.Deployments(ctx, e.ID, engineclient.ListOptions{PageSize: api.MaxPageSize})); err != nil {
		return details{}, err
	}
	if d.rollouts, err = engineclient.Collect(l.client.EveryRollout(ctx, e.ID)); err != nil {
		return details{}, err
	}
	slices.SortStableFunc(d.rollouts, func(a, b api.Rollout) int { return b.CreatedAt.Compare(a.CreatedAt.Time) })
	d.etag, d.at = e.ETag, l.now()
	l.kept[e.ID] = d
	return d, nil
}

// renewed takes over what the entry of the list shows, and reads the open rollout.
func (l *Live) renewed(ctx context.Context, e api.Endpoint, d details) (details, error) {
	d.deployments = slices.Clone(d.deployments)
	for i := range d.deployments {
		for _, now := range e.Deployments {
			if now.ID == d.deployments[i].ID {
				d.deployments[i].Autoscaling, d.deployments[i].Status.State, d.deployments[i].Status.ReadyReplicas = now.Autoscaling, now.State, now.ReadyReplicas
			}
		}
	}
	d.rollouts = slices.Clone(d.rollouts)
	for i, r := range d.rollouts {
		if engineclient.Terminal(r.State) {
			continue
		}
		live, err := l.client.GetRollout(ctx, e.ID, r.ID)
		if engineclient.IsNotFound(err) { // it went since the list
			delete(l.kept, e.ID)
			return l.details(ctx, e)
		}
		if err != nil {
			return details{}, err
		}
		d.rollouts[i] = live
	}
	return d, nil
}

// sameDeployments reports whether an entry of the list shows all deployments that were
// read and no other.
func sameDeployments(read []api.Deployment, shown []api.DeploymentSummary) bool {
	if len(shown) >= shownDeployments || len(read) != len(shown) {
		return false
	}
	return !slices.ContainsFunc(read, func(d api.Deployment) bool {
		return !slices.ContainsFunc(shown, func(s api.DeploymentSummary) bool { return s.ID == d.ID })
	})
}
