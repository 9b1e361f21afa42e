package render

import (
	"fmt"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// Progress is where a rollout is, in one line for logs: state, step, split and
// phase, and the reason when it is parked.
func Progress(r api.Rollout) string {
	parts := []string{strings.TrimPrefix(r.State, api.PrefixRolloutState)}
	if r.CurrentStep != nil {
		parts = append(parts, fmt.Sprintf("step %d of %d", *r.CurrentStep+1, r.Status.TotalSteps))
	}
	if r.CurrentTrafficPercent != nil {
		parts = append(parts, fmt.Sprintf("%d %% on the target", *r.CurrentTrafficPercent))
	}
	switch {
	case r.PauseInfo != nil && r.PauseInfo.Reason != "":
		parts = append(parts, r.PauseInfo.Reason)
	case r.Sluice != nil && r.Sluice.Phase != "" && r.CompletedAt == nil:
		parts = append(parts, strings.ToLower(r.Sluice.Phase))
	}
	return Inert(strings.Join(parts, " · "))
}
