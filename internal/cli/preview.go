package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// preview shows the whole journey on what stands now, as a plan of Terraform does, and
// what the engine itself remarks.
func (a *app) preview(ctx context.Context, c *engineclient.Client, ep api.Endpoint, spec api.RolloutSpec) error {
	p, err := c.PreviewRollout(ctx, ep.ID, spec)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(p)
	}
	o := a.named(ep)
	title := fmt.Sprintf("%s  %s → %s", ep.Name, o.Name(spec.SourceDeploymentID), o.Name(spec.TargetDeploymentID))
	j := planning.OnPreview(spec, p)
	j.Findings = slices.DeleteFunc(j.Findings, toldLive(p))
	if err := render.Plan(a.Out, title, j, o); err != nil {
		return err
	}
	return render.Notes(a.Out, append(remarks(spec, p), "nothing was changed; without --preview it starts"), o)
}

// toldLive finds the findings that a warning of the engine tells better: it knows the
// traffic that there is.
func toldLive(p api.Preview) func(planning.Finding) bool {
	better := map[planning.Code]planning.Code{planning.GateLowSamplesNote: planning.GateSamplesShort, planning.UngatedWhenIdle: planning.GateNeedsTraffic}
	return func(f planning.Finding) bool {
		live, has := better[f.Code]
		return has && slices.ContainsFunc(p.Warnings, func(w api.Warning) bool { return w.Code == string(live) })
	}
}

// remarks are what a plan's findings do not say: where it starts from, which default
// steps are left out, and the engine's own warnings.
func remarks(spec api.RolloutSpec, p api.Preview) []string {
	seed := 0
	if p.EstimatedSeedPercent != nil {
		seed = *p.EstimatedSeedPercent
	}
	lines := []string{fmt.Sprintf("now: source %s, target %d, the pair stands at %d/%d", planning.Count(p.SourceReplicas, "replica"), p.TargetReplicas, 100-seed, seed)}
	if x := p.Sluice; x != nil && x.ColdStart > 0 {
		lines = append(lines, fmt.Sprintf("time: at least %s; %s if each step that starts replicas takes the config's whole cold start budget of %s", planning.Span(time.Duration(x.LeastTime)), planning.Span(time.Duration(x.TimeWithColdStarts)), planning.Span(time.Duration(x.ColdStart))))
	}
	if out := planning.LeftOut(spec, p); len(out) > 0 {
		steps := make([]string, 0, len(out))
		for _, percent := range out {
			steps = append(steps, strconv.Itoa(percent))
		}
		lines = append(lines, fmt.Sprintf("of the default ladder %s %% is left out: the target carries %d %% already", strings.Join(steps, ", "), seed))
	}
	for _, w := range p.Warnings {
		lines = append(lines, "! "+w.Code+": "+w.Message)
	}
	return lines
}
