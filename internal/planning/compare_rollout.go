package planning

import (
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// comparedRollout is one rollout while it is compared.
type comparedRollout struct {
	*comparison
	change *Change
	d      declaration.Rollout
	home   StandingEndpoint
	spec   rollout.Spec
	wire   api.RolloutSpec
}

func (c *comparison) rollout(change *Change, d declaration.Rollout) {
	home, _, missing := c.located(change, d.Endpoint)
	if missing {
		change.block("there is no endpoint %s in this project", change.EndpointID)
	}
	r := &comparedRollout{comparison: c, change: change, d: d, home: home}
	r.read()
	switch live, how := r.find(); how {
	case notFound:
		change.Action = Create
		r.startsNew()
	case asAsked:
		r.keep(live)
	case otherSpec:
		r.replace(live)
	}
	change.owned(home)
}

// read makes the spec with the ids that are known, its digest and its journey.
func (r *comparedRollout) read() {
	for _, field := range r.d.Unknown {
		if !slices.Contains(idFields, field) {
			return // its shape is not known
		}
	}
	s := r.d.Spec
	s.Source, s.Target = r.resolve(r.d.Source), r.resolve(r.d.Target)
	r.spec, r.wire = s, wire.SpecToAPI(s)
	r.change.Spec = &r.wire
	if s.Target != "" && (s.Source != "" || !r.d.Source.Given()) {
		r.change.Digest = Digest(s)
	}
	j := NewJourney(s, Known{Timeout: r.limit(r.d.Timeouts.Create)}, r.standing.Timings)
	j.Digest = r.change.Digest
	r.change.Journey = &j
	for _, need := range []struct {
		asked                 bool
		attribute, capability string
	}{
		{s.HoldSource, "hold_source_until_complete", api.CapabilityHoldSource},
		{s.Breaker != nil, "circuit_breaker", api.CapabilityCircuitBreaker},
	} {
		if need.asked && !slices.Contains(r.standing.Capabilities, need.capability) {
			r.change.block("this engine has no %s: it does not announce the capability %q", need.attribute, need.capability)
		}
	}
}

// idFields are the fields that a journey does not depend on.
var idFields = []string{"sourceDeploymentId", "targetDeploymentId"}

// limit is how long a door is asked to wait; 0 for its default.
func (r *comparedRollout) limit(asked declaration.Field[time.Duration]) time.Duration {
	if !r.d.Wait.Value {
		return 0
	}
	return asked.Value
}

// found says what a search for a rollout came to.
type found int

const (
	notFound  found = iota
	asAsked         // it is of this spec
	otherSpec       // what is bound is of another spec
)

// find looks for the rollout that a block has: the bound one, else the one that was made
// of the same spec.
func (r *comparedRollout) find() (api.Rollout, found) {
	if live, ok := r.home.rollout(r.bound[r.d.Address]); ok {
		if r.change.Digest != "" && r.isBound(live) {
			return live, asAsked
		}
		if newer, ok := r.sameSpec(); ok {
			return newer, asAsked
		}
		return live, otherSpec
	}
	if live, ok := r.sameSpec(); ok {
		return live, asAsked
	}
	return api.Rollout{}, notFound
}

// isBound reports whether the bound rollout is of the spec that is declared. A source
// that is left out is the one that was inferred.
func (r *comparedRollout) isBound(live api.Rollout) bool {
	if SameRollout(live, r.wire, r.change.Digest) {
		return true
	}
	if r.wire.SourceDeploymentID != "" || live.Sluice == nil || live.Sluice.Spec == nil {
		return false
	}
	asked := r.wire
	asked.SourceDeploymentID = live.Sluice.Spec.SourceDeploymentID
	return DigestOf(asked) == DigestOf(*live.Sluice.Spec)
}

func (r *comparedRollout) sameSpec() (api.Rollout, bool) {
	if r.change.Digest == "" {
		return api.Rollout{}, false
	}
	return Made(r.home.Endpoint, r.home.Rollouts, r.wire, r.change.Digest)
}

// startsNew looks at what a create meets, or the create of a replacement.
func (r *comparedRollout) startsNew() {
	change := r.change
	change.after = overlay(r.d.Attributes, r.planned())
	if want := r.d.DesiredState; !want.Unknown && want.Value != WantCompleted {
		change.block("a new rollout starts with desired_state = \"completed\"; %q steers one that is under way", want.Value)
	}
	if first, twice := r.starts[r.endpointKey()]; twice {
		change.block("%s moves traffic of the same endpoint in this plan; an endpoint has one rollout at a time", first)
	}
	r.starts[r.endpointKey()] = r.d.Address
	r.sidesExist()
	if holder, held := r.home.Holder(); held && holder.ID != change.ID {
		change.blockedBy(holder, "held by %s until it ends: %s", holder.ID, HeldBy(r.home.ID, holder))
		return
	}
	if r.home.ID == "" || change.Digest == "" {
		return
	}
	if ServesAlone(r.home.Endpoint, r.spec.Target) {
		change.block("nothing is left to move: the target serves alone; swap the two sides to move traffic away from it, or take this rollout out")
		return
	}
	r.facesTraffic()
}

// endpointKey names the endpoint of a rollout, whether it is made yet or not.
func (r *comparedRollout) endpointKey() string { return r.d.Endpoint.String() }

// sidesExist blocks a rollout whose written ids name nothing.
func (r *comparedRollout) sidesExist() {
	if r.home.ID == "" {
		return
	}
	for name, id := range map[string]string{"source_deployment_id": r.spec.Source, "target_deployment_id": r.spec.Target} {
		if _, ok := r.home.deployment(id); id != "" && !ok {
			r.change.block("%s: there is no deployment %s on endpoint %s", name, id, r.home.ID)
		}
	}
}

// facesTraffic compares what the gates need with the traffic that there is now.
func (r *comparedRollout) facesTraffic() {
	source := r.spec.Source
	if source == "" {
		inferred, err := SourceIn(r.home.Endpoint, r.spec.Target)
		if err != nil {
			r.change.note("the source cannot be inferred now: %v", err)
			return
		}
		name := inferred
		if d, ok := r.home.deployment(inferred); ok {
			name = fmt.Sprintf("%s (%s)", BareName(d.Name), inferred)
		}
		r.change.note("inferred source: %s, the one deployment besides the target that serves now", name)
		source = inferred
	}
	if rate, known := r.home.requestRate(source, r.spec.Target); known && r.change.Journey != nil {
		r.change.Findings = Traffic(r.spec, r.change.Journey.Percents(), r.standing.Timings, rate)
	}
}

// replace plans another rollout in the place of one of another spec. What is under way
// comes first: it ends by itself, or by destroy_behavior.
func (r *comparedRollout) replace(live api.Rollout) {
	r.change.Action, r.change.ID, r.change.Live = Replace, live.ID, &live
	r.change.Fields = append(r.change.Fields, FieldChange{Path: "spec_digest", Before: raw(liveDigest(live)), After: raw(orNil(r.change.Digest)), Unknown: r.change.Digest == "", Replaces: true, Whose: r.whoseSpec()})
	switch {
	case IsOver(live.State), StateOf(live) == rollout.Pending:
	case r.d.DestroyBehavior.Value == "cancel":
		r.change.note("%s is %s; destroy_behavior is \"cancel\", so its split is frozen first and another rollout starts from there", live.ID, StateOf(live))
	default: // this reason comes before those of a start, which the end of the rollout may change
		r.change.blockedBy(live, "the spec changed, but %s is under way: %s Put the spec back to wait for it, let it end, or cancel it", live.ID, HeldBy(r.home.ID, live))
	}
	r.startsNew()
}

func (r *comparedRollout) whoseSpec() Whose {
	if was, ok := r.before(r.d.Address); ok && was.Rollout != nil {
		return Yours
	}
	return Untold
}

func liveDigest(live api.Rollout) string {
	if live.Sluice == nil {
		return ""
	}
	return live.Sluice.Digest
}

// keep plans for a rollout that exists: it is started when it was made and not started,
// steered when that is asked, and else left alone.
func (r *comparedRollout) keep(live api.Rollout) {
	change, state := r.change, StateOf(live)
	change.ID, change.Live = live.ID, &live
	if r.bound[r.d.Address] != live.ID {
		change.note("%s", takenIn(live))
	}
	wish := r.wish(live)
	control, refused := ControlFor(wish)
	switch {
	case refused != "" && !(state == rollout.Canceled && r.d.DesiredState.Value == WantCompleted):
		change.block("%s", refused)
	case state == rollout.Pending:
		change.Action = Start
	case control != JustWait && control != Nothing:
		change.Action, change.Control = Steer, control
	}
	if state == rollout.Canceled && wish.Want != WantCanceled {
		change.note("%s was CANCELED and is not started again by itself: somebody decided against this spec. Change the spec to go another way", live.ID)
	}
	if state == rollout.Completed {
		r.ahead(live)
	}
	change.Waits = !IsOver(live.State) && control != Nothing
	change.showRollout(r.d, live, r.standing.Timings)
}

func takenIn(live api.Rollout) string {
	switch state := StateOf(live); {
	case !IsOver(live.State):
		return fmt.Sprintf("%s of this very spec is %s: it is taken over, and no second one is made", live.ID, state)
	default:
		return fmt.Sprintf("%s of this very spec is %s: it is taken in, and nothing is moved again", live.ID, state)
	}
}

// wish is what is asked of a rollout beside what was asked before. A door that does not
// remember takes nothing for new: a resume_token lifts no park then, and a promotion is
// asked for by the command.
func (r *comparedRollout) wish(live api.Rollout) Wish {
	want := r.d.DesiredState.Value
	w := Wish{ID: live.ID, State: StateOf(live), Before: want, Want: want, Again: "delete its record"}
	was, ok := r.before(r.d.Address)
	if !ok || was.Rollout == nil {
		if want == WantPromoted && !IsOver(live.State) {
			r.change.note("whether desired_state = \"promoted\" is new is not remembered here; to promote it: sluice rollout %s --promote", live.EndpointID)
		}
		return w
	}
	w.Before = was.Rollout.DesiredState.Value
	token := r.d.ResumeToken
	w.NewToken = token.Given && !token.Unknown && token.Value != was.Rollout.ResumeToken.Value
	return w
}

// ahead tells when a later rollout has taken back what a completed one did.
func (r *comparedRollout) ahead(live api.Rollout) {
	split := r.home.TrafficSplit
	if WeightIn(split, live.TargetDeploymentID) > 0 || WeightIn(split, live.SourceDeploymentID) <= 0 {
		return
	}
	for _, later := range r.home.Rollouts {
		if later.State == api.PrefixRolloutState+string(rollout.Completed) && later.CreatedAt.After(live.CreatedAt.Time) &&
			later.SourceDeploymentID == live.TargetDeploymentID && later.TargetDeploymentID == live.SourceDeploymentID {
			r.change.note("live is ahead of the file: %s moved the traffic back, and this rollout is not run again by itself", later.ID)
			return
		}
	}
}

func (c *comparison) deleteRollout(change *Change) bool {
	for _, home := range c.standing.Endpoints {
		live, ok := home.rollout(change.ID)
		if !ok {
			continue
		}
		change.Endpoint, change.EndpointID, change.Live = BareName(home.Name), home.ID, &live
		if !IsOver(live.State) && StateOf(live) != rollout.Pending {
			change.blockedBy(live, "locked by %s until it ends: %s", live.ID, HeldBy(home.ID, live))
		}
		change.owned(home)
		change.before = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(live.ID)})
		return true
	}
	return false
}
