package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// rulesWithin is how long the rules of a policy may take over one plan.
const rulesWithin = 10 * time.Second

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
