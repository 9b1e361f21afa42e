package provider

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// gateLine is one metric rule beside the traffic that there is.
type gateLine struct {
	Metric   types.String    `tfsdk:"metric"`
	Window   types.Float64   `tfsdk:"window_seconds"`
	Needed   types.Int64     `tfsdk:"samples_needed"`
	Expected []types.Float64 `tfsdk:"samples_expected_at_step"`
	Enough   types.Bool      `tfsdk:"enough"`
}

// limitsLine is what the journey asks of one side's autoscaler.
type limitsLine struct {
	Side         types.String `tfsdk:"side"`
	DeploymentID types.String `tfsdk:"deployment_id"`
	Asked        types.Int64  `tfsdk:"asked_replicas"`
	Final        types.Int64  `tfsdk:"final_replicas"`
	Min          types.Int64  `tfsdk:"min_replicas"`
	Max          types.Int64  `tfsdk:"max_replicas"`
	Desired      types.Int64  `tfsdk:"desired_replicas"`
	Ready        types.Int64  `tfsdk:"ready_replicas"`
	Lifts        types.Bool   `tfsdk:"lifts_ceiling"`
}

func withAttributes(base, more map[string]attr.Type) map[string]attr.Type {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

// side is one deployment of the pair with the hardware of a replica; nil when the
// engine does not list it.
type side struct {
	deployment api.Deployment
	hardware   *api.InstanceType
}

// sides reads source and target, and their hardware, best effort: a hosted engine may
// not let every key list it.
func (d *previewDataSource) sides(ctx context.Context, endpoint string, spec api.RolloutSpec) ([2]side, error) {
	var out [2]side
	for i, id := range []string{spec.SourceDeploymentID, spec.TargetDeploymentID} {
		dep, err := d.engine.client.GetDeployment(ctx, endpoint, id)
		if err != nil {
			return out, fmt.Errorf("deployment %s: %w", id, err)
		}
		out[i].deployment = dep
	}
	for h, err := range d.engine.client.Hardware(ctx) {
		if err != nil {
			tflog.Info(ctx, "no hardware for the preview: "+err.Error())
			break
		}
		for i := range out {
			if out[i].deployment.Hardware == h.ID {
				out[i].hardware = &h
			}
		}
	}
	return out, nil
}

// live fills in what follows from both sides as they are now.
func (m *previewModel) live(pair [2]side, p api.Preview, j planning.Journey, spec rollout.Spec, t rollout.Timings) {
	m.nothingLive()
	var cold time.Duration
	known := p.Sluice != nil && p.Sluice.ColdStart > 0
	if known {
		cold = time.Duration(p.Sluice.ColdStart)
		m.ColdStart = seconds(cold)
	}
	if m.PeakReplicas.IsNull() {
		m.PeakReplicas = optionalInt(j.Totals.PeakReplicas)
	}
	m.SourceHardware, m.Hardware = hardwareValue(pair[0].hardware), hardwareValue(pair[1].hardware)
	var machines [2]planning.Machine
	for i, s := range pair {
		if s.hardware != nil {
			machines[i] = planning.Machine{GPUs: s.hardware.GPUCount, CentsPerHour: s.hardware.PriceCentsPerHour}
		}
	}
	loads := j.Loads([2]int{p.SourceReplicas, p.TargetReplicas}, machines, cold)
	sum := planning.OverlapOf(loads)
	listed := pair[0].hardware != nil && pair[1].hardware != nil
	if listed && loads != nil {
		m.PeakGPUs, m.OverlapGPUs = types.Int64Value(int64(sum.PeakGPUs)), types.Int64Value(int64(sum.ExtraGPUs))
		m.OverlapGPUHours = types.Float64Value(sum.GPUHours)
		if machines[0].CentsPerHour > 0 && machines[1].CentsPerHour > 0 {
			m.OverlapCostCents = types.Float64Value(sum.Cents)
		}
	}
	m.Journey = stepsValue(j, &stepLoads{loads: loads, gpus: listed, times: known})
	facts := factsValue(j).Attributes()
	if known {
		facts["expected_duration_seconds"] = seconds(j.WithColdStarts(cold))
	}
	m.Facts, m.Findings = types.ObjectValueMust(factsType.AttrTypes, facts), findingsValue(j)
	m.Limits = limitsOf(pair, p, j)
	m.forecast(p, j, spec, t)
	m.Summary = types.StringValue(m.summary(j))
}

// nothingLive is what stands when nothing live is known.
func (m *previewModel) nothingLive() {
	m.Hardware, m.SourceHardware = types.ObjectNull(hardwareType.AttrTypes), types.ObjectNull(hardwareType.AttrTypes)
	m.PeakGPUs, m.OverlapGPUs = types.Int64Null(), types.Int64Null()
	m.OverlapGPUHours, m.OverlapCostCents = types.Float64Null(), types.Float64Null()
	m.ColdStart, m.RequestRate = types.Float64Null(), types.Float64Null()
	m.Gates, m.Limits = nil, nil
}

// forecast compares what the gates need with the traffic that there is, where the
// engine tells it.
func (m *previewModel) forecast(p api.Preview, j planning.Journey, spec rollout.Spec, t rollout.Timings) {
	rate := 0.0
	if p.Sluice != nil {
		rate = p.Sluice.SourceRequestsPerSecond + p.Sluice.TargetRequestsPerSecond
		m.RequestRate = types.Float64Value(rate)
	}
	m.Gates = []gateLine{}
	for _, g := range planning.Forecast(spec, j.Percents(), t, rate) {
		line := gateLine{Metric: types.StringValue(g.Metric), Window: seconds(g.Window), Needed: types.Int64Value(int64(g.Samples)), Enough: types.BoolNull(), Expected: make([]types.Float64, 0, len(g.Expected))}
		for _, n := range g.Expected {
			if p.Sluice == nil {
				n = nil
			}
			line.Expected = append(line.Expected, types.Float64PointerValue(n))
		}
		if p.Sluice != nil {
			line.Enough = types.BoolValue(g.Enough)
		}
		m.Gates = append(m.Gates, line)
	}
}

// stepLoads is what a step's line is told beside the journey.
type stepLoads struct {
	loads []planning.Load
	gpus  bool // the hardware of both sides is known
	times bool // so is the cold start
}

// stepsValue is journeyValue with what each step holds at most; nil for nothing known.
func stepsValue(j planning.Journey, with *stepLoads) types.List {
	lines := journeyValue(j).Elements()
	for i, line := range lines {
		step, ok := line.(types.Object)
		if !ok {
			continue
		}
		v := step.Attributes()
		v["peak_replicas"], v["peak_gpus"], v["overlap_gpus"], v["expected_seconds"] = types.Int64Null(), types.Int64Null(), types.Int64Null(), types.Float64Null()
		if with != nil && i < len(with.loads) {
			l := with.loads[i]
			v["peak_replicas"] = types.Int64Value(int64(l.Replicas))
			if with.gpus {
				v["peak_gpus"], v["overlap_gpus"] = types.Int64Value(int64(l.GPUs)), types.Int64Value(int64(l.ExtraGPUs))
			}
			if with.times {
				v["expected_seconds"] = seconds(l.Time)
			}
		}
		lines[i] = types.ObjectValueMust(previewStepType.AttrTypes, v)
	}
	return types.ListValueMust(previewStepType, lines)
}

// limitsOf tells what the journey asks of each side's autoscaler.
func limitsOf(pair [2]side, p api.Preview, j planning.Journey) []limitsLine {
	most := [2]int{p.SourceReplicas, p.TargetReplicas}
	final := [2]*int{&j.Totals.FinalSourceReplicas, j.Totals.FinalTargetReplicas}
	for _, st := range j.Steps {
		if st.TargetReplicas != nil {
			most[1] = max(most[1], *st.TargetReplicas)
		}
	}
	out := make([]limitsLine, 0, len(pair))
	for i, s := range pair {
		d := s.deployment
		line := limitsLine{
			Side: types.StringValue([]string{"source", "target"}[i]), DeploymentID: types.StringValue(d.ID), Asked: types.Int64Value(int64(most[i])), Final: optionalInt(final[i]),
			Min: optionalInt(d.Autoscaling.MinReplicas), Max: optionalInt(d.Autoscaling.MaxReplicas), Desired: optionalInt(d.DesiredReplicas), Ready: types.Int64Value(int64(d.Status.ReadyReplicas)),
			Lifts: types.BoolNull(),
		}
		if d.Autoscaling.MaxReplicas != nil {
			line.Lifts = types.BoolValue(i == 1 && most[i] > *d.Autoscaling.MaxReplicas)
		}
		out = append(out, line)
	}
	return out
}

// summary says in one line what it takes.
func (m *previewModel) summary(j planning.Journey) string {
	var parts []string
	switch {
	case m.Feasible.IsNull():
		parts = append(parts, "whether it fits is not told")
	case m.Feasible.ValueBool():
		parts = append(parts, "fits now")
	default:
		parts = append(parts, "does not fit now")
	}
	if !m.PeakReplicas.IsNull() {
		standing := m.SourceReplicas.ValueInt64() + m.TargetReplicas.ValueInt64()
		parts = append(parts, fmt.Sprintf("peak %d replicas, %d stand", m.PeakReplicas.ValueInt64(), standing))
	}
	parts = append(parts, "at least "+planning.Span(j.Totals.LeastDuration))
	if !m.ColdStart.IsNull() {
		cold := time.Duration(m.ColdStart.ValueFloat64() * float64(time.Second))
		parts = append(parts, planning.Span(j.WithColdStarts(cold))+" with cold starts")
	}
	if !m.OverlapGPUHours.IsNull() && m.OverlapGPUHours.ValueFloat64() > 0 {
		parts = append(parts, fmt.Sprintf("at most %.2g GPU-hours beside what stands", m.OverlapGPUHours.ValueFloat64()))
	}
	if !m.OverlapCostCents.IsNull() {
		parts = append(parts, fmt.Sprintf("at most $%.2f", math.Ceil(m.OverlapCostCents.ValueFloat64())/100))
	}
	return strings.Join(parts, ", ")
}

// sharesValue is the split with each deployment's part of the traffic.
func sharesValue(ep api.Endpoint) types.List {
	shares := map[string]float64{}
	for _, d := range ep.Deployments {
		shares[d.ID] = d.EstimatedEffectiveTrafficShare
	}
	entries := splitValue(ep.TrafficSplit).Elements()
	for i, entry := range entries {
		o, ok := entry.(types.Object)
		if !ok {
			continue
		}
		v := o.Attributes()
		v["share"] = types.Float64Null()
		if share, known := shares[stringAt(o, "deployment_id").ValueString()]; known {
			v["share"] = types.Float64Value(share)
		}
		entries[i] = types.ObjectValueMust(shareType.AttrTypes, v)
	}
	return types.ListValueMust(shareType, entries)
}

func hardwareValue(h *api.InstanceType) types.Object {
	if h == nil {
		return types.ObjectNull(hardwareType.AttrTypes)
	}
	headroom, exact := headroomOf(*h)
	return types.ObjectValueMust(hardwareType.AttrTypes, map[string]attr.Value{
		"id": types.StringValue(h.ID), "gpu_type": types.StringValue(h.GPUType), "gpu_count": types.Int64Value(int64(h.GPUCount)),
		"price_cents_per_hour": types.Int64Value(int64(h.PriceCentsPerHour)), "headroom": headroom, "headroom_is_exact": types.BoolValue(exact),
	})
}

// headroomOf sums the regions whose headroom is known.
func headroomOf(h api.InstanceType) (types.Int64, bool) {
	sum, known, exact := int64(0), false, true
	for _, r := range h.Regions {
		if r.Headroom == nil || r.Headroom.Value == nil {
			exact = false
			continue
		}
		sum, known = sum+int64(*r.Headroom.Value), true
		exact = exact && r.Headroom.Relation == "RELATION_EQ"
	}
	if !known {
		return types.Int64Null(), false
	}
	return types.Int64Value(sum), exact
}
