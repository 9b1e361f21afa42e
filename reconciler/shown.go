package reconciler

import (
	"bytes"
	"context"
	"fmt"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// show keeps the newest plan of a stack for the HTTP door. A plan is not changed once it
// is made.
func (p *stackPass) show(plan *planned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans[p.k] = plan
}

// stackPlan is the newest plan of a stack; nil when this process has made none.
func (r *Reconciler) stackPlan(k StackKey) *planned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plans[k]
}

// planStatus is the newest plan of a stack, if this process has made one.
func (f *follower) planStatus(ctx context.Context, c StackConfig) (PlanStatus, bool, error) {
	plan := f.stackPlan(f.key(c.Name))
	if plan == nil {
		return PlanStatus{}, false, nil
	}
	s, err := read[stackRecord](ctx, f.ledger, stackKey(f.key(c.Name)))
	if err != nil {
		return PlanStatus{}, false, err
	}
	out := PlanStatus{At: plan.at, Commit: plan.folder.Commit.ID, Digest: plan.digest, Drift: append([]driftLine{}, s.Drift...)}
	var text bytes.Buffer
	if err := plan.diags.Render(&text); err != nil {
		return out, false, err
	}
	if !plan.ok() {
		out.Text = text.String()
		return out, true, nil
	}
	if err := render.Changes(&text, plan.changes, render.Options{}); err != nil {
		return out, false, err
	}
	for _, k := range plan.kept {
		if err := render.Line(&text, fmt.Sprintf("  %s: %s", k.Address, staysText), render.Options{}); err != nil {
			return out, false, err
		}
	}
	if len(plan.verdict.Remarks) > 0 {
		if err := render.Policy(&text, plan.verdict, render.Options{}); err != nil {
			return out, false, err
		}
	}
	out.Text = text.String()
	out.Plan, err = plan.changes.JSON()
	return out, err == nil, err
}
