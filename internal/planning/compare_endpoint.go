package planning

import (
	"fmt"
	"slices"
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
		c.stays(change, live)
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

// stays blocks the end of an endpoint that still has what no change of this plan ends
// before it: the engine deletes no endpoint with deployments. A replacement ends the
// endpoint at once, so for it every deployment stays.
func (c *comparison) stays(change *Change, live StandingEndpoint) {
	var serving, left []string
	for _, d := range live.All {
		switch share := live.share(d.ID); {
		case share > 0:
			serving = append(serving, fmt.Sprintf("%s with %s", BareName(d.Name), ShareText(share)))
		case !c.ends(d.ID):
			left = append(left, BareName(d.Name))
		}
	}
	verb := map[Action]string{Replace: "replaced", Delete: "deleted"}[change.Action]
	switch {
	case len(serving) > 0 && change.Action == Replace:
		change.block("it serves traffic (%s) and is not %s: declare a second sluice_endpoint, move the callers there, then take this one out", strings.Join(serving, ", "), verb)
	case len(serving) > 0:
		change.block("it serves traffic (%s) and is not %s", strings.Join(serving, ", "), verb)
	case len(left) > 0:
		change.block("it still has %s, which this plan does not delete, and is not %s: delete them first", strings.Join(left, ", "), verb)
	}
}

// ends reports whether a change that is planned already deletes a thing.
func (c *comparison) ends(id string) bool {
	return slices.ContainsFunc(c.out, func(o Change) bool { return o.ID == id && o.Action == Delete && o.Blocked == "" })
}

func (c *comparison) deleteEndpoint(change *Change) bool {
	live, ok := c.standing.endpoint(change.ID)
	if !ok {
		return false
	}
	change.Endpoint, change.EndpointID = BareName(live.Name), live.ID
	c.endBlocked(change, live)
	c.stays(change, live)
	change.before = cty.ObjectVal(endpointValues(live))
	return true
}
