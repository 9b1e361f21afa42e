package planning

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

const prefixVisibility = "VISIBILITY_"

func (c *comparison) endpoint(change *Change, d declaration.Endpoint) {
	change.Endpoint = BareName(d.Name.Value)
	live, ok := c.standing.endpoint(c.bound[d.Address])
	if !ok && !d.Name.Unknown {
		live, ok = c.standing.EndpointNamed(d.Name.Value)
	}
	if !ok {
		change.Action = Create
		change.after = d.Attributes
		return
	}
	change.ID, change.EndpointID = live.ID, live.ID
	was, remembered := c.before(d.Address)
	f := &fields{change: change, remembers: remembered}
	var before declaration.Endpoint
	if remembered && was.Endpoint != nil {
		before = *was.Endpoint
	}
	name := BareName(live.Name)
	if d.Name.Value == live.Name {
		name = live.Name // written with the slug
	}
	f.text("name", name, d.Name, before.Name, replaces)
	f.text("visibility", strings.TrimPrefix(live.Visibility, prefixVisibility), d.Visibility, before.Visibility, updates)
	if change.Action == Replace {
		change.after = d.Attributes
		c.endBlocked(change, live)
		return
	}
	change.show(d.Attributes, endpointValues(live))
	change.owned(live)
}

// endBlocked blocks the end of an endpoint that a rollout holds or that serves.
func (c *comparison) endBlocked(change *Change, live StandingEndpoint) {
	if r, held := live.Holder(); held {
		change.blockedBy(r, "locked by %s until it ends: %s", r.ID, HeldBy(live.ID, r))
	}
	change.owned(live)
}

func (c *comparison) deleteEndpoint(change *Change) bool {
	live, ok := c.standing.endpoint(change.ID)
	if !ok {
		return false
	}
	change.Endpoint, change.EndpointID = BareName(live.Name), live.ID
	c.endBlocked(change, live)
	change.before = cty.ObjectVal(endpointValues(live))
	return true
}
