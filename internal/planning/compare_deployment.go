package planning

import (
	"math"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

const prefixDeploymentState = "DEPLOYMENT_STATE_"

func (c *comparison) deployment(change *Change, d declaration.Deployment) {
	e, ok, missing := c.located(change, d.Endpoint)
	if missing {
		change.block("there is no endpoint %s in this project", change.EndpointID)
	}
	live, home, found := c.findDeployment(d, e)
	if !found {
		change.Action = Create
		change.after = overlay(d.Attributes, change.links())
		if held, busy := e.Holder(); ok && busy && d.InitialTrafficWeight.Value > 0 {
			change.blockedBy(held, "its initial_traffic_weight needs the split, which is locked by %s until it ends", held.ID)
		}
		if ok && d.InitialTrafficWeight.Value > 0 && len(e.TrafficSplit) > 0 {
			change.besideOthers(d, e)
		}
		change.owned(e)
		return
	}
	change.ID = live.ID
	c.deploymentFields(change, d, live, home)
	if change.Action == Replace {
		change.after = overlay(d.Attributes, change.links())
		if share := home.share(live.ID); share > 0 && home.ID == change.EndpointID {
			change.block("it serves %s of its endpoint's traffic and is not replaced: add a second sluice_deployment and move the traffic with a sluice_rollout", ShareText(share))
		}
	} else {
		change.show(d.Attributes, deploymentValues(live, d))
	}
	if change.Pending() {
		c.lockDeployment(change, live, home)
		change.owned(home)
	}
}

// besideOthers tells what an initial weight does on an endpoint that serves already. Where a
// rollout has made the split it does nothing: the split is that rollout's, and a rollout
// moves traffic on from it.
func (c *Change) besideOthers(d declaration.Deployment, e StandingEndpoint) {
	for _, r := range slices.Concat(e.Rollouts, e.Past) {
		if StateOf(r) == rollout.Pending {
			continue
		}
		d.InitialTrafficWeight.Value = 0
		c.Declared.Deployment = &d
		c.note("is made without traffic whatever its initial_traffic_weight: the split of %s is what rollout %s has made, and a sluice_rollout moves traffic", BareName(e.Name), r.ID)
		return
	}
	c.note("takes a part of the traffic of %s as soon as it is ready, with no rollout and no gate: initial_traffic_weight beside what serves already", BareName(e.Name))
}

// links are the attributes that name the endpoint, as far as it is known.
func (c *Change) links() map[string]cty.Value {
	if c.EndpointID == "" {
		return nil
	}
	return map[string]cty.Value{"endpoint_id": cty.StringVal(c.EndpointID)}
}

// findDeployment finds what a block declares, and the endpoint that it is on: by its id
// wherever that is, by its name on its own endpoint.
func (c *comparison) findDeployment(d declaration.Deployment, e StandingEndpoint) (api.Deployment, StandingEndpoint, bool) {
	if id := c.bound[d.Address]; id != "" {
		for _, home := range c.standing.Endpoints {
			if live, ok := home.deployment(id); ok {
				return live, home, true
			}
		}
	}
	if d.Name.Unknown {
		return api.Deployment{}, e, false
	}
	live, ok := e.deploymentNamed(d.Name.Value)
	return live, e, ok
}

func (c *comparison) deploymentFields(change *Change, d declaration.Deployment, live api.Deployment, home StandingEndpoint) {
	was, remembered := c.before(d.Address)
	var before declaration.Deployment
	if remembered && was.Deployment != nil {
		before = *was.Deployment
	}
	f := &fields{change: change, remembers: remembered}
	if change.EndpointID != home.ID {
		f.add("endpoint_id", home.ID, change.EndpointID, change.EndpointID == "", false, replaces)
	}
	f.text("name", BareName(live.Name), d.Name, before.Name, replaces)
	if d.Model.Given && !sameModel(d.Model.Value, live) {
		f.text("model", ResourceName(live.Model, "models"), d.Model, before.Model, replaces)
	}
	if d.Config.Given && !sameConfig(d.Config.Value, live) {
		f.text("config", ResourceName(live.Config, "configs"), d.Config, before.Config, replaces)
	}
	c.bounds(f, d, before, live, home)
	if w := d.InitialTrafficWeight; w.Value > 0 && len(home.TrafficSplit) == 0 && len(home.Rollouts) == 0 {
		f.add("initial_traffic_weight", 0, w.Value, w.Unknown, false, updates) // a create was cut off before it
	}
}

// bounds compares replica bounds. Those of a deployment that has been a side of a rollout
// are what that rollout left, and what the file says is from before it: without knowing
// that the file has changed since, they are left alone. To write them would start what
// was drained, or stop what serves.
func (c *comparison) bounds(f *fields, d, before declaration.Deployment, live api.Deployment, home StandingEndpoint) {
	low, high := boundsOf(live)
	if d.MinReplicas.Value == low && d.MaxReplicas.Value == high && !d.MinReplicas.Unknown && !d.MaxReplicas.Unknown {
		return
	}
	same := f.remembers && before.MinReplicas.Value == d.MinReplicas.Value && before.MaxReplicas.Value == d.MaxReplicas.Value
	if r, touched := home.touched(live.ID); touched && (!f.remembers || same) {
		how := "as " + r.ID + " left it"
		if !StateOf(r).Terminal() {
			how = "while " + r.ID + " is under way"
		}
		f.change.note("stands at %d to %d replicas, %s; the file's %d to %d are of before and are not written", low, high, how, d.MinReplicas.Value, d.MaxReplicas.Value)
		return
	}
	f.whole("autoscaling.min_replicas", low, d.MinReplicas, before.MinReplicas, updates)
	f.whole("autoscaling.max_replicas", high, d.MaxReplicas, before.MaxReplicas, updates)
	if f.change.Action == Update && d.MaxReplicas.Value == 0 && !d.MaxReplicas.Unknown && home.share(live.ID) >= 1 {
		f.change.block("it serves all of its endpoint's traffic and is not stopped; move the traffic away with a sluice_rollout first")
	}
}

// lockDeployment blocks a change of a deployment that a rollout needs as it is.
func (c *comparison) lockDeployment(change *Change, live api.Deployment, home StandingEndpoint) {
	r, held := home.Holder()
	if held && (r.SourceDeploymentID == live.ID || r.TargetDeploymentID == live.ID) {
		change.blockedBy(r, "locked by %s until it ends: %s", r.ID, HeldBy(home.ID, r))
	}
}

func (c *comparison) deleteDeployment(change *Change) bool {
	for _, home := range c.standing.Endpoints {
		live, ok := home.deployment(change.ID)
		if !ok {
			continue
		}
		change.Endpoint, change.EndpointID = BareName(home.Name), home.ID
		c.lockDeployment(change, live, home)
		if share := home.share(live.ID); share > 0 {
			change.block("it serves %s of its endpoint's traffic; move that away with a sluice_rollout first", ShareText(share))
		}
		change.owned(home)
		change.before = cty.ObjectVal(deploymentValues(live, declaration.Deployment{}))
		return true
	}
	return false
}

// Serves reports whether a deployment serves what is declared.
func Serves(live api.Deployment, d declaration.Deployment) bool {
	return (!d.Model.Given || sameModel(d.Model.Value, live)) && (!d.Config.Given || sameConfig(d.Config.Value, live))
}

// HasBounds reports whether a deployment has these replica bounds.
func HasBounds(live api.Deployment, low, high int) bool {
	atLeast, atMost := boundsOf(live)
	return atLeast == low && atMost == high
}

func boundsOf(d api.Deployment) (low, high int) {
	if d.Autoscaling.MinReplicas != nil {
		low = *d.Autoscaling.MinReplicas
	}
	high = low
	if d.Autoscaling.MaxReplicas != nil {
		high = *d.Autoscaling.MaxReplicas
	}
	return low, high
}

// sameModel reports whether a model as it is written is the one that is served: by its
// name, its resource name or its id, at the revision that is named if one is.
func sameModel(written string, live api.Deployment) bool {
	if written == live.Model || written == live.ModelID {
		return true
	}
	if _, revision, pinned := strings.Cut(written, "/revisions/"); pinned && revision != live.ModelRevisionID {
		return false
	}
	name := ResourceName(written, "models")
	return name == ResourceName(live.Model, "models") || name == live.ModelID
}

func sameConfig(written string, live api.Deployment) bool {
	name := ResourceName(written, "configs")
	return name == live.ConfigID || name == ResourceName(live.Config, "configs")
}

// ResourceName cuts "projects/{p}/{collection}/" and a revision off a resource name.
func ResourceName(name, collection string) string {
	if _, after, ok := strings.Cut(name, "/"+collection+"/"); ok && strings.HasPrefix(name, "projects/") {
		name = after
	}
	name, _, _ = strings.Cut(name, "/revisions/")
	return name
}

// ShareText is a share for people: "100 %", and never "0 %" for one that serves.
func ShareText(share float64) string {
	if share < 0.01 {
		return "less than 1 %"
	}
	return number(math.Floor(share*100+1e-9)) + " %"
}
