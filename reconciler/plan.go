package reconciler

import (
	"cmp"
	"context"
	"path"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

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
	moved   []leftTo          // what another stack declares now
	records []planning.Change // of rollouts that are over and declared no more: history, which no plan deletes
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
	out.keepRecords()
	f.leaveToOthers(c, out)
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

// keepRecords takes the records of rollouts that are over out of a plan: they stay at the
// engine whatever Git says, so that they are no part of what somebody approves.
func (p *planned) keepRecords() {
	p.changes.List = slices.DeleteFunc(p.changes.List, func(c planning.Change) bool {
		record := c.Action == planning.Delete && c.Kind == declaration.RolloutKind && c.Blocked == "" && !neverStarted(c)
		if record {
			p.records = append(p.records, c)
		}
		return record
	})
}

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
		c := &p.changes.List[i]
		if c.Ahead == nil || c.Blocked != "" || !c.Makes() {
			continue
		}
		if no := cmp.Or(c.Ahead.Refused, c.Ahead.Standstill()); no != "" {
			c.Blocked = "the engine would refuse it: " + no
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
