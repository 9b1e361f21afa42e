package rehearsal

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// billingMutants scale up what nobody pays for.
func billingMutants() []mutant {
	return []mutant{
		believes("a lapse is ignored", func(_ *rollout.Rollout, o *rollout.Observed, _ time.Time) { o.Lapsed = "" }),
		concludes("a lapse parks, but the target is scaled first", func(r rollout.Rollout, d *rollout.Decision, o rollout.Observed, _ time.Time) {
			if working(r) && o.Lapsed != "" && d.Rollout.State == rollout.SystemPaused && o.Target.Bounds.Min < o.Target.Bounds.Max {
				*d = rollout.Decision{Rollout: r, Effects: []rollout.Effect{{Kind: rollout.SetBounds, Deployment: r.Spec.Target, Min: ptrTo(o.Target.Bounds.Min + 1)}}}
			}
		}),
		{"the billing is asked before the first scale-up alone", func(c *engine.Config) { c.Billing = &trusting{Entitlement: c.Billing} }},
		{"a billing that does not answer is a yes", func(c *engine.Config) { c.Billing = lenient{c.Billing} }},
		believes("a park on the billing that nobody asked for", func(r *rollout.Rollout, o *rollout.Observed, _ time.Time) {
			if r.Phase == rollout.PhaseScaling && r.Step > 0 {
				o.Lapsed = "surely"
			}
		}),
	}
}

// trusting remembers a yes.
type trusting struct {
	engine.Entitlement
	yes bool
}

func (b *trusting) Check(ctx context.Context, project string, d rollout.Deployment, replicas int) error {
	if b.yes {
		return nil
	}
	err := b.Entitlement.Check(ctx, project, d, replicas)
	b.yes = err == nil
	return err
}

// lenient takes no answer for a yes.
type lenient struct{ engine.Entitlement }

func (b lenient) Check(ctx context.Context, project string, d rollout.Deployment, replicas int) error {
	err := b.Entitlement.Check(ctx, project, d, replicas)
	var lapse *rollout.Lapse
	if errors.As(err, &lapse) {
		return err
	}
	return nil
}
