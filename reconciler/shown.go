package reconciler

import (
	"bytes"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// show keeps the newest plan of a stack for the HTTP door. A plan is not changed once it
// is made.
func (p *stackPass) show(plan *planned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans[p.k] = plan
}

// planStatus is the newest plan of a stack, if this process has made one.
func (f *follower) planStatus(c StackConfig) (PlanStatus, bool, error) {
	f.mu.Lock()
	plan := f.plans[f.key(c.Name)]
	f.mu.Unlock()
	if plan == nil {
		return PlanStatus{}, false, nil
	}
	out := PlanStatus{At: plan.at, Commit: plan.folder.Commit.ID, Digest: plan.digest, Drift: []driftLine{}}
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
	if len(plan.verdict.Remarks) > 0 {
		if err := render.Policy(&text, plan.verdict, render.Options{}); err != nil {
			return out, false, err
		}
	}
	out.Text = text.String()
	for _, ch := range plan.changes.List {
		out.Drift = append(out.Drift, theirLines(ch)...)
	}
	var err error
	out.Plan, err = plan.changes.JSON()
	return out, err == nil, err
}
