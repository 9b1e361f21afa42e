package planning

import (
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Standing is what stands at an engine, as far as a plan looks at it.
type Standing struct {
	ProjectID    string
	Slug         string
	Ours         bool // Sluice's own engine, which takes what travels under the key sluice
	Capabilities []string
	Timings      rollout.Timings
	Endpoints    []StandingEndpoint
}

// StandingEndpoint is an endpoint with all that it has.
type StandingEndpoint struct {
	api.Endpoint
	All      []api.Deployment // all of them, unlike the ten of the endpoint itself
	Rollouts []api.Rollout    // newest first
	Past     []api.Rollout    // newest first, those that only tell what they have left
	Owner    string           // who else declares it, which holds every change; empty for nobody
	Keeper   string           // the same, for a plan that is only shown: it is told and holds nothing
}

// Bindings are the ids of what a door has made or taken in, by its address. What is not
// bound is found by its name.
type Bindings map[declaration.Address]string

// endpoint finds an endpoint by its id.
func (s Standing) endpoint(id string) (StandingEndpoint, bool) {
	i := slices.IndexFunc(s.Endpoints, func(e StandingEndpoint) bool { return e.ID == id })
	if i < 0 || id == "" {
		return StandingEndpoint{}, false
	}
	return s.Endpoints[i], true
}

// EndpointNamed finds an endpoint by its name in the project, with or without the slug.
func (s Standing) EndpointNamed(name string) (StandingEndpoint, bool) {
	i := slices.IndexFunc(s.Endpoints, func(e StandingEndpoint) bool { return e.Name == name || BareName(e.Name) == name })
	if i < 0 || name == "" {
		return StandingEndpoint{}, false
	}
	return s.Endpoints[i], true
}

// BareName is the last part of a qualified name: chat of acme/chat.
func BareName(qualified string) string { return qualified[strings.LastIndex(qualified, "/")+1:] }

// deployment finds a deployment of the endpoint by its id.
func (e StandingEndpoint) deployment(id string) (api.Deployment, bool) {
	i := slices.IndexFunc(e.All, func(d api.Deployment) bool { return d.ID == id })
	if i < 0 || id == "" {
		return api.Deployment{}, false
	}
	return e.All[i], true
}

// deploymentNamed finds a deployment of the endpoint by its name.
func (e StandingEndpoint) deploymentNamed(name string) (api.Deployment, bool) {
	i := slices.IndexFunc(e.All, func(d api.Deployment) bool { return BareName(d.Name) == name })
	if i < 0 || name == "" {
		return api.Deployment{}, false
	}
	return e.All[i], true
}

// rollout finds a rollout of the endpoint by its id.
func (e StandingEndpoint) rollout(id string) (api.Rollout, bool) {
	i := slices.IndexFunc(e.Rollouts, func(r api.Rollout) bool { return r.ID == id })
	if i < 0 || id == "" {
		return api.Rollout{}, false
	}
	return e.Rollouts[i], true
}

// Holder is the rollout that holds the endpoint's slot, if one does. Like the client's
// it looks at every rollout: one that is paused holds it too.
func (e StandingEndpoint) Holder() (api.Rollout, bool) {
	i := slices.IndexFunc(e.Rollouts, func(r api.Rollout) bool { return !IsOver(r.State) })
	if i < 0 {
		return api.Rollout{}, false
	}
	return e.Rollouts[i], true
}

// share is a deployment's part of the endpoint's traffic now, 0 to 1: weight times ready
// replicas over the sum.
func (e StandingEndpoint) share(id string) float64 { return ShareIn(e.TrafficSplit, e.All, id) }

// touched reports whether a rollout that was started has had a deployment as a side: its
// bounds are then what that rollout left.
func (e StandingEndpoint) touched(id string) (api.Rollout, bool) {
	for _, all := range [][]api.Rollout{e.Rollouts, e.Past} {
		i := slices.IndexFunc(all, func(r api.Rollout) bool {
			return StateOf(r) != rollout.Pending && (r.SourceDeploymentID == id || r.TargetDeploymentID == id)
		})
		if i >= 0 {
			return all[i], true
		}
	}
	return api.Rollout{}, false
}

// requestRate is how many requests a second a pair gets now; known is false where the
// engine does not tell.
func (e StandingEndpoint) requestRate(source, target string) (rate float64, known bool) {
	if e.Sluice == nil || e.Sluice.Serving == nil {
		return 0, false
	}
	for _, part := range e.Sluice.Serving {
		if part.DeploymentID == source || part.DeploymentID == target {
			rate += float64(part.Requests) / 60
		}
	}
	return rate, true
}
