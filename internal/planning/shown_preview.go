package planning

import (
	"fmt"
	"math"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// ShownPreview is what the data source sluice_rollout_preview gives beside the spec: the
// names and values of its schema and of docs/schemas/rollout_preview.schema.json, at every
// door. Null is what an engine does not tell.
type ShownPreview struct {
	Feasible         *bool              `json:"feasible" tfsdk:"feasible"`
	Shortfall        *string            `json:"shortfall" tfsdk:"shortfall"`
	SourceReplicas   *int64             `json:"source_replicas" tfsdk:"source_replicas"`
	TargetReplicas   *int64             `json:"target_replicas" tfsdk:"target_replicas"`
	LandingMin       *int64             `json:"landing_min_replicas" tfsdk:"landing_min_replicas"`
	LandingMax       *int64             `json:"landing_max_replicas" tfsdk:"landing_max_replicas"`
	PeakReplicas     *int64             `json:"peak_replicas" tfsdk:"peak_replicas"`
	FrozenPair       *bool              `json:"frozen_pair" tfsdk:"frozen_pair"`
	SeedPercent      *int64             `json:"seed_percent" tfsdk:"seed_percent"`
	Journey          []ShownPreviewStep `json:"journey" tfsdk:"journey"`
	Facts            *ShownFacts        `json:"facts" tfsdk:"facts"`
	Findings         []ShownFinding     `json:"findings" tfsdk:"findings"`
	Warnings         []ShownWarning     `json:"warnings" tfsdk:"warnings"`
	Hardware         *ShownHardware     `json:"hardware" tfsdk:"hardware"`
	SourceHardware   *ShownHardware     `json:"source_hardware" tfsdk:"source_hardware"`
	PeakGPUs         *int64             `json:"peak_gpus" tfsdk:"peak_gpus"`
	OverlapGPUs      *int64             `json:"overlap_gpus" tfsdk:"overlap_gpus"`
	OverlapGPUHours  *float64           `json:"overlap_gpu_hours" tfsdk:"overlap_gpu_hours"`
	OverlapCostCents *float64           `json:"overlap_cost_cents" tfsdk:"overlap_cost_cents"`
	ColdStart        *float64           `json:"cold_start_seconds" tfsdk:"cold_start_seconds"`
	RequestRate      *float64           `json:"requests_per_second" tfsdk:"requests_per_second"`
	Gates            []ShownGate        `json:"gates" tfsdk:"gates"`
	Limits           []ShownLimits      `json:"limits" tfsdk:"limits"`
	Drift            *ShownDrift        `json:"drift" tfsdk:"drift"`
	Summary          *string            `json:"summary" tfsdk:"summary"`
	TrafficSplit     []ShownShare       `json:"traffic_split" tfsdk:"traffic_split"`
	LockHolder       *ShownHolder       `json:"lock_holder" tfsdk:"lock_holder"`
	SpecDigest       *string            `json:"spec_digest" tfsdk:"spec_digest"`
	PlanDigest       *string            `json:"plan_digest" tfsdk:"plan_digest"`
}

// ShownPreviewStep is a step on what stands.
type ShownPreviewStep struct {
	ShownStep
	PeakReplicas *int64   `json:"peak_replicas" tfsdk:"peak_replicas"`
	PeakGPUs     *int64   `json:"peak_gpus" tfsdk:"peak_gpus"`
	OverlapGPUs  *int64   `json:"overlap_gpus" tfsdk:"overlap_gpus"`
	Expected     *float64 `json:"expected_seconds" tfsdk:"expected_seconds"`
}

// ShownWarning is a remark of the engine.
type ShownWarning struct {
	Code    string `json:"code" tfsdk:"code"`
	Message string `json:"message" tfsdk:"message"`
}

// ShownHardware is what a replica runs on.
type ShownHardware struct {
	ID              string `json:"id" tfsdk:"id"`
	GPUType         string `json:"gpu_type" tfsdk:"gpu_type"`
	GPUCount        int64  `json:"gpu_count" tfsdk:"gpu_count"`
	Price           int64  `json:"price_cents_per_hour" tfsdk:"price_cents_per_hour"`
	Headroom        *int64 `json:"headroom" tfsdk:"headroom"` // further replicas that fit
	HeadroomIsExact bool   `json:"headroom_is_exact" tfsdk:"headroom_is_exact"`
}

// ShownGate is one metric rule beside the traffic that there is.
type ShownGate struct {
	Metric   string     `json:"metric" tfsdk:"metric"`
	Window   float64    `json:"window_seconds" tfsdk:"window_seconds"`
	Needed   int64      `json:"samples_needed" tfsdk:"samples_needed"`
	Expected []*float64 `json:"samples_expected_at_step" tfsdk:"samples_expected_at_step"`
	Enough   *bool      `json:"enough" tfsdk:"enough"`
}

// ShownLimits is what the journey asks of one side's autoscaler.
type ShownLimits struct {
	Side         string `json:"side" tfsdk:"side"` // source or target
	DeploymentID string `json:"deployment_id" tfsdk:"deployment_id"`
	Asked        int64  `json:"asked_replicas" tfsdk:"asked_replicas"`
	Final        *int64 `json:"final_replicas" tfsdk:"final_replicas"`
	Min          *int64 `json:"min_replicas" tfsdk:"min_replicas"`
	Max          *int64 `json:"max_replicas" tfsdk:"max_replicas"`
	Desired      *int64 `json:"desired_replicas" tfsdk:"desired_replicas"`
	Ready        int64  `json:"ready_replicas" tfsdk:"ready_replicas"`
	Lifts        *bool  `json:"lifts_ceiling" tfsdk:"lifts_ceiling"`
}

// ShownShare is one entry of a split, with its part of the traffic, 0 to 1.
type ShownShare struct {
	DeploymentID string   `json:"deployment_id" tfsdk:"deployment_id"`
	Weight       float64  `json:"weight" tfsdk:"weight"`
	Share        *float64 `json:"share" tfsdk:"share"`
}

// ShownHolder is the rollout that holds an endpoint.
type ShownHolder struct {
	RolloutID string `json:"rollout_id" tfsdk:"rollout_id"`
	State     string `json:"state" tfsdk:"state"`
	Percent   int64  `json:"traffic_percent" tfsdk:"traffic_percent"`
}

// codeRefused is the warning of a preview that the engine refused.
const codeRefused = "CREATE_WILL_REJECT"

// Shown is all of it, as a plan shows it.
func (a Ahead) Shown() ShownPreview {
	j := a.Journey()
	facts := FactsOf(j)
	out := ShownPreview{
		Facts: &facts, Findings: ShownFindings(j), Drift: a.Drift, TrafficSplit: sharesOf(a.Endpoint), LockHolder: holderOf(a.Holder),
		SpecDigest: &a.Digest, PlanDigest: ptr(a.PlanDigest()),
	}
	if a.Refused != "" {
		out.Journey = previewSteps(j, nil)
		out.Summary = ptr("refused as things stand: " + a.Refused)
		out.Warnings = []ShownWarning{{codeRefused, a.Refused}}
		return out
	}
	a.told(&out)
	a.live(&out, j)
	return out
}

// told takes over what the engine answered.
func (a Ahead) told(out *ShownPreview) {
	p := a.Preview
	out.SourceReplicas, out.TargetReplicas = long(&p.SourceReplicas), long(&p.TargetReplicas)
	out.LandingMin, out.LandingMax = long(p.LandingMinReplicas), long(p.LandingMaxReplicas)
	out.FrozenPair, out.SeedPercent = &p.FrozenPair, ptr(int64(0))
	if p.EstimatedSeedPercent != nil {
		out.SeedPercent = long(p.EstimatedSeedPercent)
	}
	out.Warnings = make([]ShownWarning, 0, len(p.Warnings))
	for _, w := range p.Warnings {
		out.Warnings = append(out.Warnings, ShownWarning(w))
	}
	if x := p.Sluice; x != nil {
		out.Feasible, out.Shortfall, out.PeakReplicas = &x.Feasible, orNil(x.Shortfall), long(&x.PeakReplicas)
		out.RequestRate = ptr(x.SourceRequestsPerSecond + x.TargetRequestsPerSecond)
	}
}

// live fills in what follows from both sides as they are now.
func (a Ahead) live(out *ShownPreview, j Journey) {
	if out.PeakReplicas == nil {
		out.PeakReplicas = long(j.Totals.PeakReplicas)
	}
	if cold := a.coldStart(); cold > 0 {
		out.ColdStart, out.Facts.ExpectedDuration = ptr(cold.Seconds()), ptr(j.WithColdStarts(cold).Seconds())
	}
	out.SourceHardware, out.Hardware = hardwareOf(a.Pair[0].Hardware), hardwareOf(a.Pair[1].Hardware)
	if loads := a.Loads(); loads != nil {
		sum := OverlapOf(loads)
		out.PeakGPUs, out.OverlapGPUs, out.OverlapGPUHours, out.OverlapCostCents = long(&sum.PeakGPUs), long(&sum.ExtraGPUs), &sum.GPUHours, a.Cents()
	}
	out.Journey = previewSteps(j, &a)
	out.Limits, out.Gates = a.limits(j), a.gates(j)
	out.Summary = ptr(a.summary(*out, j))
}

// previewSteps are the steps with what each holds at most; nil for nothing known.
func previewSteps(j Journey, on *Ahead) []ShownPreviewStep {
	steps := ShownSteps(j)
	out := make([]ShownPreviewStep, 0, len(steps))
	var loads []Load
	if on != nil {
		loads = on.loads(j)
	}
	for i, st := range steps {
		line := ShownPreviewStep{ShownStep: st}
		if i < len(loads) {
			l := loads[i]
			line.PeakReplicas = long(&l.Replicas)
			if on.listed() {
				line.PeakGPUs, line.OverlapGPUs = long(&l.GPUs), long(&l.ExtraGPUs)
			}
			if on.coldStart() > 0 {
				line.Expected = ptr(l.Time.Seconds())
			}
		}
		out = append(out, line)
	}
	return out
}

// gates compares what the gates need with the traffic that there is, where the engine
// tells it.
func (a Ahead) gates(j Journey) []ShownGate {
	rate, known := 0.0, a.Preview.Sluice != nil
	if known {
		rate = a.Preview.Sluice.SourceRequestsPerSecond + a.Preview.Sluice.TargetRequestsPerSecond
	}
	out := []ShownGate{}
	for _, g := range Forecast(a.spec(), j.Percents(), a.Timings, rate) {
		line := ShownGate{Metric: g.Metric, Window: g.Window.Seconds(), Needed: int64(g.Samples), Expected: g.Expected}
		if known {
			line.Enough = &g.Enough
		} else {
			line.Expected = make([]*float64, len(g.Expected))
		}
		out = append(out, line)
	}
	return out
}

// limits tells what the journey asks of each side's autoscaler.
func (a Ahead) limits(j Journey) []ShownLimits {
	most := [2]int{a.Preview.SourceReplicas, a.Preview.TargetReplicas}
	final := [2]*int{&j.Totals.FinalSourceReplicas, j.Totals.FinalTargetReplicas}
	for _, st := range j.Steps {
		if st.TargetReplicas != nil {
			most[1] = max(most[1], *st.TargetReplicas)
		}
	}
	out := make([]ShownLimits, 0, len(a.Pair))
	for i, s := range a.Pair {
		d := s.Deployment
		line := ShownLimits{
			Side: []string{"source", "target"}[i], DeploymentID: d.ID, Asked: int64(most[i]), Final: long(final[i]),
			Min: long(d.Autoscaling.MinReplicas), Max: long(d.Autoscaling.MaxReplicas), Desired: long(d.DesiredReplicas), Ready: int64(d.Status.ReadyReplicas),
		}
		if d.Autoscaling.MaxReplicas != nil {
			line.Lifts = ptr(i == 1 && most[i] > *d.Autoscaling.MaxReplicas)
		}
		out = append(out, line)
	}
	return out
}

// summary says in one line what it takes.
func (a Ahead) summary(p ShownPreview, j Journey) string {
	var parts []string
	switch {
	case p.Feasible == nil:
		parts = append(parts, "whether it fits is not told")
	case *p.Feasible:
		parts = append(parts, "fits now")
	default:
		parts = append(parts, "does not fit now")
	}
	if p.PeakReplicas != nil {
		parts = append(parts, fmt.Sprintf("peak %d replicas, %d stand", *p.PeakReplicas, *p.SourceReplicas+*p.TargetReplicas))
	}
	parts = append(parts, "at least "+Span(j.Totals.LeastDuration))
	if cold := a.coldStart(); cold > 0 {
		parts = append(parts, Span(j.WithColdStarts(cold))+" with cold starts")
	}
	if p.OverlapGPUHours != nil && *p.OverlapGPUHours > 0 {
		parts = append(parts, fmt.Sprintf("at most %.2g GPU-hours beside what stands", *p.OverlapGPUHours))
	}
	if p.OverlapCostCents != nil {
		parts = append(parts, fmt.Sprintf("at most $%.2f", math.Ceil(*p.OverlapCostCents)/100))
	}
	return strings.Join(parts, ", ")
}

// sharesOf is the split with each deployment's part of the traffic.
func sharesOf(ep api.Endpoint) []ShownShare {
	shares := map[string]float64{}
	for _, d := range ep.Deployments {
		shares[d.ID] = d.EstimatedEffectiveTrafficShare
	}
	out := []ShownShare{}
	for _, w := range ep.TrafficSplit {
		if w.Weight == 0 {
			continue // equal to absent
		}
		line := ShownShare{DeploymentID: w.DeploymentID, Weight: w.Weight}
		if share, known := shares[w.DeploymentID]; known {
			line.Share = &share
		}
		out = append(out, line)
	}
	return out
}

func holderOf(r *api.Rollout) *ShownHolder {
	if r == nil {
		return nil
	}
	out := &ShownHolder{RolloutID: r.ID, State: string(StateOf(*r))}
	if r.CurrentTrafficPercent != nil {
		out.Percent = int64(*r.CurrentTrafficPercent)
	}
	return out
}

func hardwareOf(h *api.InstanceType) *ShownHardware {
	if h == nil {
		return nil
	}
	out := &ShownHardware{ID: h.ID, GPUType: h.GPUType, GPUCount: int64(h.GPUCount), Price: int64(h.PriceCentsPerHour)}
	out.Headroom, out.HeadroomIsExact = headroomOf(*h)
	return out
}
