package reconciler

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// rulesWithin is how long the rules of a policy may take over one plan.
const rulesWithin = 10 * time.Second

// planned is a folder beside what stands: what would be changed, and what is said of it.
type planned struct {
	folder  folder
	diags   declaration.Diagnostics
	changes planning.Changes
	verdict policy.Verdict // of all policies
	judged  []judgement    // the same, each by its policy
	digest  string         // of the plan; empty when there is none
	at      time.Time
	kept    []planning.Change // what is declared no more and stays
	problem string            // why there is no plan, where it is not the files

	known bool   // it was made in an earlier pass
	waits []Wait // of an apply
	acted int    // changes that were made in this pass
	done  bool   // nothing is left to change
}

// ok reports whether there is a plan at all.
func (p *planned) ok() bool { return p.digest != "" }

// gone counts what the plan would delete, without the records of rollouts.
func (p *planned) gone() int {
	n := 0
	for _, c := range p.changes.List {
		if c.Action == planning.Delete && c.Kind != declaration.RolloutKind {
			n++
		}
	}
	return n
}

// planFolder plans a folder against what stands at the engine now. What is wrong with
// the folder is in the plan's diagnostics; the error is of the engine or of the policy.
// What it evaluates it may keep for the next time.
func (f *follower) planFolder(ctx context.Context, c StackConfig, o folder, s stackRecord, kept *loads) (out *planned, err error) {
	err = f.within(ctx, "plan", func(ctx context.Context) error {
		var err error
		out, err = f.planIn(ctx, c, o, s, kept)
		return err
	}, ofStack.String(c.Name), ofCommit.String(o.Commit.ID))
	return out, err
}

func (f *follower) planIn(ctx context.Context, c StackConfig, o folder, s stackRecord, kept *loads) (*planned, error) {
	out := &planned{folder: o, at: f.now()}
	options, err := o.options(c)
	if err != nil {
		out.diags = append(out.diags, declaration.Diagnostic{Severity: declaration.Error, Summary: "The variables cannot be read", Detail: err.Error(), Range: hcl.Range{Filename: path.Join(c.Folder, "-")}})
		return out, nil //nolint:nilerr // it is told as a mistake in the configuration of the stack
	}
	if out.diags = refusals(o.Refused); out.diags.HasErrors() {
		return out, nil
	}
	past, err := f.past(ctx, c, s, o, options, kept)
	if err != nil {
		return nil, err
	}
	load := func(options declaration.Options) (declaration.Set, declaration.Diagnostics) {
		return kept.load(o, options)
	}
	if kept != nil {
		options.Known = kept.known // most often nothing that stands is new
	}
	if out.changes, out.diags, err = f.live.plan(ctx, load, options, past); err != nil || out.diags.HasErrors() {
		return out, err
	}
	if kept != nil {
		kept.known = out.changes.Known()
	}
	if f.config.Prune.Mode != PruneOn {
		out.keepUndeclared()
	}
	if out.changes, err = LookAhead(ctx, f.engine, out.changes); err != nil {
		return out, err
	}
	out.blockRefused()
	out.digest = out.changes.Digest()
	if len(f.config.Policies) == 0 {
		return out, nil
	}
	return out, f.within(ctx, "judge", func(ctx context.Context) error { return f.judge(ctx, out) })
}

// staysText is what becomes of a thing that is declared no more while prune is off.
const staysText = "it is not declared any more, and stays, since there is no prune block"

// keepUndeclared takes out of a plan what it would delete: without prune nothing is, so
// that neither a person nor a policy reads of it. A rollout that never started goes all
// the same, since it would hold its endpoint for ever.
func (p *planned) keepUndeclared() {
	p.changes.List = slices.DeleteFunc(p.changes.List, func(c planning.Change) bool {
		stays := c.Action == planning.Delete && !neverStarted(c)
		if stays {
			p.kept = append(p.kept, c)
		}
		return stays
	})
}

// blockRefused blocks the rollouts that the engine says it would refuse, so that nobody is
// asked to approve what cannot be.
func (p *planned) blockRefused() {
	for i := range p.changes.List {
		if c := &p.changes.List[i]; c.Ahead != nil && c.Ahead.Refused != "" && c.Blocked == "" && c.Makes() {
			c.Blocked = "the engine would refuse it: " + c.Ahead.Refused
		}
	}
}

// refusals are errors of a plan: a file that is not read must never look like one that
// was removed.
func refusals(refused []gitsource.Refusal) declaration.Diagnostics {
	var out declaration.Diagnostics
	for _, r := range refused {
		out = append(out, declaration.Diagnostic{Severity: declaration.Error, Summary: "A watched path is not read", Detail: r.Path + " " + r.Reason, Hint: "nothing is planned until it is a plain file again, or excluded", Range: hcl.Range{Filename: r.Path}})
	}
	return out
}

// past is what this stack remembers of its folder.
func (f *follower) past(ctx context.Context, c StackConfig, s stackRecord, o folder, options declaration.Options, kept *loads) (Past, error) {
	out := Past{Bound: s.bindings(), Sees: func(standing planning.Standing) planning.Standing { return f.sees(c, s, standing) }}
	applied, known, err := f.applied(ctx, c, s, o, options, kept)
	if known {
		out.Applied = &applied
	}
	return out, err
}

// sees is what stands, as this stack may see it: rollouts that a later decision has
// overtaken are left out, so that going back to an old spec in Git is a new rollout, and
// so is one that a person has allowed again.
func (f *follower) sees(c StackConfig, s stackRecord, standing planning.Standing) planning.Standing {
	ours := f.owner(c)
	standing.Endpoints = slices.Clone(standing.Endpoints)
	for i := range standing.Endpoints {
		e := &standing.Endpoints[i]
		if e.Owner == ours {
			e.Owner = ""
		}
		since, all := s.since(*e), e.Rollouts
		e.Rollouts = nil
		for _, r := range all {
			if engineclient.Terminal(r.State) && !s.has(r.ID) && (r.CreatedAt.Before(since) || s.again(r)) {
				e.Past = append(e.Past, r) // what it has left still stands
				continue
			}
			e.Rollouts = append(e.Rollouts, r)
		}
	}
	return standing
}

// history are the rollouts that a plan was made without.
func (p *planned) history() []string {
	var out []string
	for _, e := range p.changes.Standing.Endpoints {
		for _, r := range e.Past {
			out = append(out, r.ID)
		}
	}
	return out
}

// again reports whether a rollout is of a spec that a person has allowed once more since.
func (s *stackRecord) again(r api.Rollout) bool {
	return r.Sluice != nil && slices.ContainsFunc(s.Again, func(a allowedAgain) bool { return a.Spec == r.Sluice.Digest && r.CreatedAt.Before(a.At) })
}

// has reports whether an id is bound.
func (s *stackRecord) has(id string) bool {
	return slices.ContainsFunc(s.Bound, func(b boundThing) bool { return b.ID == id })
}

// since is when the newest rollout of an endpoint that the stack has was made: those
// before it are history.
func (s *stackRecord) since(e planning.StandingEndpoint) time.Time {
	var out time.Time
	for _, r := range e.Rollouts {
		if s.has(r.ID) && r.CreatedAt.After(out) {
			out = r.CreatedAt.Time
		}
	}
	return out
}

// applied is what this stack has applied last: the set of the newest commit that was in
// step, with what the current run has changed since.
func (f *follower) applied(ctx context.Context, c StackConfig, s stackRecord, o folder, options declaration.Options, kept *loads) (declaration.Set, bool, error) {
	if s.Settled == "" {
		return declaration.Set{}, false, nil
	}
	m := f.remember(c.Name)
	if m.settled != s.Settled {
		tree, err := f.remote.Read(ctx, f.at(s.Settled))
		var gone *gitsource.Gone
		if errors.As(err, &gone) {
			return declaration.Set{}, false, nil // whose a difference is cannot be told then
		}
		if err != nil {
			return declaration.Set{}, false, fmt.Errorf("read %s, which was applied last: %w", short(s.Settled), err)
		}
		set, diags := declaration.LoadFiles(folderOf(tree, c).Files, options)
		if diags.HasErrors() {
			return declaration.Set{}, false, nil // the variables have changed since
		}
		m.settled, m.applied = s.Settled, set
	}
	if len(s.Done) == 0 {
		return m.applied, true, nil
	}
	now, diags := kept.load(o, options)
	return overlaid(m.applied, now, s.Done), !diags.HasErrors(), nil
}

// overlaid is a set with the blocks of a newer one at some addresses.
func overlaid(base, now declaration.Set, at []string) declaration.Set {
	if len(at) == 0 {
		return base
	}
	newer := func(a declaration.Address) bool { return slices.Contains(at, a.String()) }
	return declaration.Set{
		Order:       base.Order,
		Endpoints:   pick(base.Endpoints, now.Endpoints, func(e declaration.Endpoint) bool { return newer(e.Address) }),
		Deployments: pick(base.Deployments, now.Deployments, func(d declaration.Deployment) bool { return newer(d.Address) }),
		Rollouts:    pick(base.Rollouts, now.Rollouts, func(r declaration.Rollout) bool { return newer(r.Address) }),
	}
}

func pick[T any](base, now []T, newer func(T) bool) []T {
	return slices.Concat(slices.DeleteFunc(slices.Clone(base), newer), slices.DeleteFunc(slices.Clone(now), func(v T) bool { return !newer(v) }))
}

// judgement is what one policy says of a plan. Who may lift a denial is that policy's
// affair, also where another one has a rule or an overrider of the same name.
type judgement struct {
	by      PolicyConfig
	verdict policy.Verdict
}

// judge asks the policies about a plan.
func (f *follower) judge(ctx context.Context, p *planned) error {
	text, err := p.changes.JSON()
	if err != nil {
		return fmt.Errorf("write the plan for the policy: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, rulesWithin)
	defer cancel()
	for _, c := range f.config.Policies {
		rules, err := f.rules(c)
		if err != nil {
			return fmt.Errorf("policy %s: %w", policyName(c), err)
		}
		v, err := rules.Judge(ctx, policy.Question{Plan: text, Now: f.now()})
		if err != nil {
			return fmt.Errorf("policy %s: %w", policyName(c), err)
		}
		p.verdict.Remarks = append(p.verdict.Remarks, v.Remarks...)
		p.judged = append(p.judged, judgement{c, v})
	}
	slices.SortStableFunc(p.verdict.Remarks, func(a, b policy.Remark) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return nil
}

func policyName(c PolicyConfig) string {
	if c.Path != "" {
		return c.Path
	}
	return c.Repository + ":" + c.Folder
}

// firstError is the first error of a plan's diagnostics, for one line.
func firstError(ds declaration.Diagnostics) string {
	for _, d := range ds {
		if d.Severity == declaration.Error {
			return render.Inert(d.String())
		}
	}
	return ""
}

// makePlan plans the folder that is applied. While nothing that it depends on looks
// different the last plan serves, to say what is waited for; it is never acted on.
func (p *stackPass) makePlan(ctx context.Context) error {
	m := p.remember(p.c.Name)
	looks, err := p.looks(ctx)
	if err != nil {
		return err
	}
	if m.plan != nil && m.looks == looks && p.now().Before(m.plan.at.Add(p.planAnew())) {
		known := *m.plan
		known.known, known.waits, known.acted, known.done = true, nil, 0, false
		p.plan = &known
		return nil
	}
	plan, err := p.planFolder(ctx, p.c, *p.folder, p.s, &m.loads)
	if err != nil {
		return err
	}
	p.plan, m.plan, m.looks = plan, plan, looks
	p.show(plan)
	return nil
}
