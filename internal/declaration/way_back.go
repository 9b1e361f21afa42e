package declaration

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// wayBack reads what keeps a way back open: a source that is held, a circuit breaker.
func (s *specReading) wayBack(hold, breaker cty.Value) *api.SpecExtra {
	var out api.SpecExtra
	if !hold.IsKnown() {
		s.missing("sluice.holdSourceUntilComplete")
	} else if !hold.IsNull() {
		out.HoldSource = hold.True()
	}
	if !breaker.IsKnown() {
		s.missing("sluice.circuitBreaker")
	} else if !breaker.IsNull() {
		out.CircuitBreaker = s.breaker(breaker)
	}
	if out == (api.SpecExtra{}) {
		return nil
	}
	return &out
}

func (s *specReading) breaker(v cty.Value) *api.CircuitBreaker {
	const at = "sluice.circuitBreaker"
	out := &api.CircuitBreaker{SignedBy: s.enum(v.GetAttr("signed_by"), at+".signedBy", "")}
	for i, r := range s.elements(v.GetAttr("rules"), at+".rules") {
		out.Rules = append(out.Rules, s.metric(fmt.Sprintf("%s.rules[%d]", at, i), r))
	}
	return out
}

// declared is a wire field as HCL has it: what travels under the key sluice stands
// beside the rest.
func declared(field string) string { return strings.TrimPrefix(field, "sluice.") }
