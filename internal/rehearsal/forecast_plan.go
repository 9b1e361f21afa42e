package rehearsal

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// PlanOf makes the plan of a declared rollout with what is known. assumed says, line by
// line, what neither tells and was put in its place.
func PlanOf(set declaration.Set, r declaration.Rollout, f Facts) (p Plan, assumed []string, err error) {
	b := planner{set: set, facts: f}
	ids := map[declaration.Ref]string{}
	for _, d := range set.Deployments {
		ids[declaration.Ref{Address: d.Address, Attribute: "id"}] = d.Address.String()
	}
	spec, err := r.Resolve(ids)
	if err != nil {
		return Plan{}, nil, err
	}
	if err := b.known(spec); err != nil {
		return Plan{}, nil, err
	}
	if spec.Source == "" {
		if spec.Source, err = b.serving(r, spec.Target); err != nil {
			return Plan{}, nil, err
		}
	}
	p = Plan{Address: r.Address.String(), Endpoint: b.endpoint(r), Spec: spec, Timings: f.InEffect()}
	if p.Source, err = b.party(spec.Source); err != nil {
		return Plan{}, nil, err
	}
	if p.Target, err = b.party(spec.Target); err != nil {
		return Plan{}, nil, err
	}
	if err := b.finish(&p); err != nil {
		return Plan{}, nil, err
	}
	if p.Rate, err = b.rate(spec); err != nil {
		return Plan{}, nil, err
	}
	return p, b.assumed, nil
}

// rate is what the pair gets: as told, or its part of what an engine sees on the endpoint.
func (b *planner) rate(s rollout.Spec) (float64, error) {
	switch {
	case b.facts.RequestRate != nil:
		return *b.facts.RequestRate, nil
	case b.facts.EndpointRate != nil:
		part := 0.0
		for _, name := range []string{s.Source, s.Target} {
			if share := b.factsOf(name).EndpointShare; share != nil {
				part += *share
			}
		}
		return *b.facts.EndpointRate * part, nil
	}
	return 0, fmt.Errorf("request_rate is not known: give the requests a second that the pair gets")
}

// planner puts declarations and facts together.
type planner struct {
	set     declaration.Set
	facts   Facts
	assumed []string
}

func (b *planner) assume(format string, args ...any) {
	b.assumed = append(b.assumed, fmt.Sprintf(format, args...))
}

func (b *planner) endpoint(r declaration.Rollout) string {
	if to := r.Endpoint.To; to != nil {
		for _, e := range b.set.Endpoints {
			if e.Address == to.Address && e.Name.Value != "" {
				return e.Name.Value
			}
		}
		return to.Address.String()
	}
	if r.Endpoint.ID != "" {
		return r.Endpoint.ID
	}
	return "ENDPOINT"
}

// declared finds a deployment by its address.
func (b *planner) declared(name string) (declaration.Deployment, bool) {
	for _, d := range b.set.Deployments {
		if d.Address.String() == name {
			return d, true
		}
	}
	return declaration.Deployment{}, false
}

// names are what a deployment may stand under in the facts.
func (b *planner) names(name string) []string {
	if d, ok := b.declared(name); ok {
		return []string{name, d.Name.Value}
	}
	return []string{name}
}

func (b *planner) factsOf(name string) (out DeploymentFacts) {
	for _, n := range b.names(name) {
		out = out.over(b.facts.Deployments[n])
	}
	return out
}

// known refuses facts about deployments that do not exist: a name that is misspelt would
// otherwise leave its deployment to assumptions.
func (b *planner) known(spec rollout.Spec) error {
	names := []string{spec.Source, spec.Target}
	for _, d := range b.set.Deployments {
		names = append(names, b.names(d.Address.String())...)
	}
	for _, name := range slices.Sorted(maps.Keys(b.facts.Deployments)) {
		if !slices.Contains(names, name) {
			names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
			slices.Sort(names)
			return fmt.Errorf("facts: no deployment %q is declared; there are %s", name, strings.Join(slices.Compact(names), ", "))
		}
	}
	return nil
}

// serving infers the source: the one other deployment of the endpoint that has replicas.
func (b *planner) serving(r declaration.Rollout, target string) (string, error) {
	var found []string
	for _, d := range b.set.Deployments {
		name := d.Address.String()
		if name == target || !d.Endpoint.Same(r.Endpoint) {
			continue
		}
		f := b.factsOf(name)
		if replicas := either(f.Replicas, &d.MinReplicas.Value); *replicas > 0 && (f.Share == nil || *f.Share > 0) {
			found = append(found, name)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return "", fmt.Errorf("%s: the source cannot be inferred, %d other deployments of its endpoint serve: declare source_deployment_id", r.Address, len(found))
}

// party is one side as declared and known.
func (b *planner) party(name string) (Party, error) {
	f := b.factsOf(name)
	p := Party{Name: name, Share: -1, Model: Model{Factor: 1}}
	if d, ok := b.declared(name); ok {
		p.Bounds = rollout.Bounds{Min: d.MinReplicas.Value, Max: d.MaxReplicas.Value}
	} else if f.Replicas == nil {
		return p, fmt.Errorf("%s is not declared here: give its replicas in the facts", name)
	}
	if f.Min != nil {
		p.Bounds.Min = *f.Min
	}
	if f.Max != nil {
		p.Bounds.Max = *f.Max
	}
	p.Replicas = p.Bounds.Min
	if f.Replicas != nil {
		p.Replicas = *f.Replicas
	}
	if _, ok := b.declared(name); !ok && f.Min == nil && f.Max == nil {
		p.Bounds = rollout.Bounds{Min: p.Replicas, Max: p.Replicas}
	}
	switch {
	case p.Bounds.Min > p.Bounds.Max:
		return p, fmt.Errorf("%s: bounds %d..%d are none", name, p.Bounds.Min, p.Bounds.Max)
	case p.Replicas < p.Bounds.Min || p.Replicas > p.Bounds.Max:
		return p, fmt.Errorf("%s: %d replica(s) are outside the bounds %d..%d", name, p.Replicas, p.Bounds.Min, p.Bounds.Max)
	case p.Replicas > maxCount:
		return p, fmt.Errorf("%s: %d replicas are more than a rehearsal plays (%d)", name, p.Replicas, maxCount)
	}
	if f.Share != nil {
		p.Share = *f.Share
	}
	b.starts(&p, f)
	if f.ErrorRate != nil {
		p.Model.ErrorRate = *f.ErrorRate
	}
	if f.Latency != nil {
		p.Model.Latency = *f.Latency
	}
	var err error
	p.Pool, err = b.pool(f.Hardware)
	return p, err
}

// assumedStart is a cold start of which nothing is known.
const assumedStart = 2 * time.Minute

func (b *planner) starts(p *Party, f DeploymentFacts) {
	switch {
	case f.ColdStart != nil:
		p.ColdStart = *f.ColdStart
	case f.Budget != nil:
		p.ColdStart = Curve{modelserver.Constant(*f.Budget)}
		b.assume("cold_start of %s is not known: all of its budget of %s is assumed", p.Name, planning.Span(*f.Budget))
	default:
		p.ColdStart = Curve{modelserver.Constant(assumedStart)}
		b.assume("cold_start of %s is not known: %s is assumed", p.Name, assumedStart)
	}
	if f.Budget != nil {
		p.Budget = *f.Budget
	}
	if f.Drain != nil {
		p.Drain = *f.Drain
	}
}

// pool is a hardware pool; capacity counts all replicas, which finish makes free ones.
func (b *planner) pool(name string) (Pool, error) {
	if name == "" {
		return Pool{Name: "hardware", Free: -1, GPUs: 1}, nil
	}
	f, ok := b.facts.Hardware[name]
	if !ok && len(b.facts.Hardware) > 0 {
		return Pool{}, fmt.Errorf("facts: hardware %q is not among %s", name, strings.Join(slices.Sorted(maps.Keys(b.facts.Hardware)), ", "))
	}
	p := Pool{Name: name, Free: -1, GPUs: 1}
	if f.GPUs != nil {
		p.GPUs = *f.GPUs
	}
	if f.Free != nil {
		p.Free = *f.Free
	}
	return p, nil
}

// finish fills what follows from both sides together.
func (b *planner) finish(p *Plan) error {
	if p.Source.Replicas == 0 {
		return fmt.Errorf("%s: the source has no replica, so nothing serves: give its replicas in the facts", p.Source.Name)
	}
	b.liveShares(p)
	if err := completeShares(p); err != nil {
		return err
	}
	b.models(p)
	for _, side := range []*Party{&p.Source, &p.Target} {
		capacity := b.facts.Hardware[side.Pool.Name].Capacity
		if capacity == nil {
			continue
		}
		used := side.Replicas
		if p.Source.Pool.Name == p.Target.Pool.Name {
			used = p.Source.Replicas + p.Target.Replicas
		}
		if used > *capacity {
			return fmt.Errorf("facts: hardware %q has room for %d replica(s), and %d run there", side.Pool.Name, *capacity, used)
		}
		side.Pool.Free = *capacity - used
	}
	return nil
}

// liveShares makes parts of the pair of parts of the endpoint.
func (b *planner) liveShares(p *Plan) {
	s, t := b.factsOf(p.Source.Name).EndpointShare, b.factsOf(p.Target.Name).EndpointShare
	if p.Source.Share >= 0 || p.Target.Share >= 0 || s == nil || t == nil || *s+*t <= 0 {
		return
	}
	p.Target.Share = int(math.Round(*t / (*s + *t) * 100))
}

// completeShares completes the split of the pair; a target that is not told to serve has none.
func completeShares(p *Plan) error {
	s, t := &p.Source.Share, &p.Target.Share
	switch {
	case *s < 0 && *t < 0:
		*s, *t = 100, 0
	case *s < 0:
		*s = 100 - *t
	case *t < 0:
		*t = 100 - *s
	case *s+*t != 100:
		return fmt.Errorf("facts: the shares of %s and %s are %d and %d, and must add up to 100", p.Source.Name, p.Target.Name, *s, *t)
	}
	if *t > 0 && p.Target.Replicas == 0 {
		return fmt.Errorf("%s: a share of %d %% without a replica", p.Target.Name, *t)
	}
	return nil
}

// models assumes that sides of which one is not known are equal.
func (b *planner) models(p *Plan) {
	unknown := Curve{}
	s, t := &p.Source.Model.Latency, &p.Target.Model.Latency
	switch {
	case *s == unknown && *t == unknown:
		*s, _ = ParseCurve("lognormal(500ms,0.4)") // well formed
		*t = *s
		b.assume("latencies are not known: both sides are assumed equal, %s", s)
	case *s == unknown:
		*s = *t
		b.assume("the latency of %s is not known: both sides are assumed equal", p.Source.Name)
	case *t == unknown:
		*t = *s
		b.assume("the latency of %s is not known: both sides are assumed equal", p.Target.Name)
	}
}
