package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

var (
	breakerRuleType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"name": types.StringType, "stat": statType, "percentile": wholeNumber, "window": durationType, "threshold_check": thresholds,
	}}
	breakerType = types.ObjectType{AttrTypes: map[string]attr.Type{"signed_by": types.StringType, "rules": types.ListType{ElemType: breakerRuleType}}}
)

// wayBack reads what keeps a way back open: a source that is held, a circuit breaker.
func (d *decoder) wayBack(m specModel) {
	if m.HoldSource.IsUnknown() {
		d.missing("sluice.holdSourceUntilComplete")
	}
	if m.CircuitBreaker.IsUnknown() {
		d.missing("sluice.circuitBreaker")
	}
	extra := api.SpecExtra{HoldSource: m.HoldSource.ValueBool()}
	if !m.CircuitBreaker.IsNull() && !m.CircuitBreaker.IsUnknown() {
		extra.CircuitBreaker = d.breaker(m.CircuitBreaker)
	}
	if extra != (api.SpecExtra{}) {
		d.out.spec.Sluice = &extra
	}
}

func (d *decoder) breaker(o types.Object) *api.CircuitBreaker {
	const at = "sluice.circuitBreaker"
	out := &api.CircuitBreaker{SignedBy: d.str(at+".signedBy", stringAt(o, "signed_by"))}
	rules := listAt(o, "rules")
	if rules.IsUnknown() {
		d.missing(at + ".rules")
	}
	for i, e := range rules.Elements() {
		field := fmt.Sprintf("%s.rules[%d]", at, i)
		rule, ok := e.(types.Object)
		if !ok || rule.IsUnknown() {
			d.missing(field)
			out.Rules = append(out.Rules, api.MetricRule{})
			continue
		}
		out.Rules = append(out.Rules, d.metric(field, rule))
	}
	return out
}

// fillWayBack writes what an engine told into a model.
func (m *specModel) fillWayBack(x *api.SpecExtra) {
	m.HoldSource, m.CircuitBreaker = types.BoolNull(), types.ObjectNull(breakerType.AttrTypes)
	if x == nil {
		return
	}
	if x.HoldSource {
		m.HoldSource = types.BoolValue(true)
	}
	b := x.CircuitBreaker
	if b == nil {
		return
	}
	rules := make([]attr.Value, 0, len(b.Rules))
	for _, r := range b.Rules {
		whole := metricValue(r).Attributes()
		delete(whole, "regression_check")
		rules = append(rules, types.ObjectValueMust(breakerRuleType.AttrTypes, whole))
	}
	m.CircuitBreaker = types.ObjectValueMust(breakerType.AttrTypes, map[string]attr.Value{
		"signed_by": types.StringValue(b.SignedBy), "rules": types.ListValueMust(breakerRuleType, rules),
	})
}

// takes refuses, at plan, what only Sluice's own engine can do, where another one is
// configured: it would ignore it, and the way back would not be there when it is needed.
func (e *engine) takes(ctx context.Context, s api.RolloutSpec) diag.Diagnostics {
	var diags diag.Diagnostics
	if s.Sluice == nil {
		return diags
	}
	for _, need := range []struct {
		asked                 bool
		attribute, capability string
	}{
		{s.Sluice.HoldSource, "hold_source_until_complete", api.CapabilityHoldSource},
		{s.Sluice.CircuitBreaker != nil, "circuit_breaker", api.CapabilityCircuitBreaker},
	} {
		if need.asked {
			e.requires(ctx, &diags, path.Root(need.attribute), need.capability)
		}
	}
	return diags
}

// signed adds to what is asked of Sluice's own engine whose spec it is.
func signed(x *api.SpecExtra, digest string) *api.SpecExtra {
	var out api.SpecExtra
	if x != nil {
		out = *x
	}
	out.Digest, out.Origin = digest, "terraform"
	return &out
}
