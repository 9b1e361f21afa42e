package render

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

const (
	headCommit = "3f2a91c04be7d15f8a6c2e9b7d40f1a5c8e6b392"
	baseCommit = "9c0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f6a7b8c9"
)

// planSheet is a pull request that adds the demo's rollout.
func planSheet() Sheet {
	basis := &rollout.Basis{SourceReplicas: 5, SourceBounds: rollout.Bounds{Min: 5, Max: 8}}
	j := planning.NewJourney(spec(), planning.Known{Basis: basis}, rollout.DefaultTimings())
	loads := j.Loads([2]int{5, 0}, [2]planning.Machine{{GPUs: 1, CentsPerHour: 250}, {GPUs: 1, CentsPerHour: 250}}, 4*time.Minute)
	return Sheet{
		Marker: Marker{Instance: "prod", Repository: "serving"}, Stage: Planned,
		Revision: Revision{Repository: "acme/serving", Commit: headCommit, Branch: "qwen35", Base: "main", BaseCommit: baseCommit, At: started, URL: "https://forge.example/acme/serving/commit/" + headCommit},
		Stacks: []StackSheet{{
			Name: "prod",
			Changes: []Change{
				{Address: "sluice_deployment.qwen35", Action: planning.Create, Fields: []Field{{Path: "model", After: `"qwen3.5-7b"`}, {Path: "max_replicas", After: "8"}}},
				{Address: "sluice_rollout.chat", Action: planning.Create},
				{Address: "sluice_deployment.qwen25", Action: planning.NoOp, ID: "dep_a"},
			},
			Rollouts: []RolloutSheet{{Address: "sluice_rollout.chat", Endpoint: "prod/chat", Journey: j, Live: Live{Fit: Fits, FreeGPUs: ptr(4), Loads: loads, Cost: ptr(planning.OverlapOf(loads).Cents)}}},
			Diff:     "--- a/prod/chat.tf\n+++ b/prod/chat.tf\n@@ -1,2 +1,3 @@\n resource \"sluice_endpoint\" \"chat\" {\n+  name = \"chat\"\n }",
		}},
		Approval: Approval{Mode: ByMerge, Plans: []PlanApproval{{Stack: "prod", Digest: j.Digest}}},
		History:  []Push{{Commit: "11aa22bb33cc44dd55ee66ff778899aabbccddee", At: started.Add(-time.Hour), Verdict: "✗ Not planned: 1 error in the HCL"}},
	}
}

func plannedRollout(s *Sheet) *RolloutSheet { return &s.Stacks[0].Rollouts[0] }

func deniedSheet() Sheet {
	s := planSheet()
	s.Stacks[0].Policy = policy.Verdict{Remarks: []policy.Remark{
		{Severity: policy.Deny, Message: "the first step puts 10 % on the target, at most 5 % are allowed in prod", Rule: "first_step", Address: "sluice_rollout.chat", Override: []string{"platform-leads"}},
		{Severity: policy.Deny, Message: "no p99 gate", Rule: "needs_p99", Address: "sluice_rollout.chat", Override: []string{"platform-leads"}},
		{Severity: policy.Warn, Message: "a weekend is near", Rule: "weekend"},
	}}
	s.Stacks[0].Overrides = []Override{{Rule: "needs_p99", By: "ann", Reason: "too little traffic for p99 before Monday", At: started.Add(time.Minute)}}
	return s
}

func infeasibleSheet() Sheet {
	s := planSheet()
	r := plannedRollout(&s)
	r.Live.Fit, r.Live.FreeGPUs, r.Live.Shortfall = Short, ptr(1), "the journey's peak needs 3 more replicas of h100-80gb and 1 fit"
	r.Live.Warnings = []api.Warning{{Code: "CAPACITY_SHORT", Message: "the rollout would park CAPACITY_EXHAUSTED before anything moves"}}
	return s
}

func invalidSheet() Sheet {
	s := planSheet()
	s.Stacks[0] = StackSheet{Name: "prod", Diff: s.Stacks[0].Diff, Diagnostics: []Diagnostic{{
		Severity: "error", At: "prod/chat.tf:12:17", Summary: "There is no endpoint named chatt",
		Text: "error: There is no endpoint named chatt\n  --> prod/chat.tf:12:17\n   |\n12 |   endpoint_id = sluice_endpoint.chatt.id\n   |                 ^^^^^^^^^^^^^^^^^^^^^\n   = hint: did you mean \"chat\"?\n",
	}}}
	s.Approval.Plans = nil
	return s
}

func conflictSheet() Sheet {
	s := planSheet()
	s.Stacks, s.Approval.Plans = nil, nil
	s.Conflicts = []Notice{{Path: "prod/chat.tf", Reason: "both sides changed lines 12 to 19"}}
	s.Refused = []Notice{{Path: "prod/shared.tf", Reason: "is a symbolic link"}}
	return s
}

func driftSheet() Sheet {
	s := planSheet()
	s.Stacks[0].Drift = []Drift{
		{Address: "sluice_deployment.qwen25", Field: "max_replicas", Applied: "8", Yours: "8", Theirs: "12", Actor: "bob", At: started.Add(-2 * time.Hour), Event: "deployment.updated", Effect: "is kept, since the drift mode is report"},
		{Address: "sluice_endpoint.chat", Field: "traffic_split", Applied: "100/0", Yours: "100/0", Theirs: "95/5", At: started.Add(-time.Hour), Event: "endpoint.break_glass", Effect: "the rollout starts from 95/5"},
	}
	s.Waiting = []string{"the change freeze \"quarter end\" until 2026-10-01 06:00:00 UTC"}
	return s
}

func digestSheet() Sheet {
	s := planSheet()
	s.Approval.Mode, s.Approval.May, s.Approval.File = ByDigest, "maintain or more, or team acme/platform; not the author", "sluice.approvals"
	s.Approval.Plans[0].Void = "it named 77aa00bb11cc, and main has moved since"
	return s
}

// liveSheet follows a rollout of the core.
func liveSheet(r rollout.Rollout) Sheet {
	s := planSheet()
	s.Stage = Following
	run := &Run{Rollout: wire.RolloutToAPI(r), Names: map[string]string{"dep_a": "qwen25", "dep_b": "qwen35"}, URL: "https://sluice.example/rollouts/rol_1"}
	run.Events = []api.Event{
		{Type: "rollout.started", CreatedAt: api.At(started), Message: "started"},
		{Type: "rollout.traffic_shifted", CreatedAt: api.At(started.Add(237 * time.Second)), Message: "target traffic: 0% → 10%", OldTrafficPercent: ptr(0), NewTrafficPercent: ptr(10)},
	}
	plannedRollout(&s).Run = run
	return s
}

func soakingSheet(t *testing.T) Sheet {
	r := demo(t)
	r.State, r.Phase, r.Percent = rollout.Stabilizing, rollout.PhaseSoaking, 50
	r.Step = 1
	r.Steps[0] = rollout.StepRecord{State: rollout.StepPassed, StartedAt: started, CompletedAt: started.Add(8 * time.Minute)}
	r.Steps[1] = rollout.StepRecord{State: rollout.StepRunning, StartedAt: started.Add(8 * time.Minute), Rows: []rollout.Row{
		rollout.Judge(spec().Rules[0], rollout.Reading{Value: 734.2, Samples: 710, Complete: true}, rollout.Reading{Value: 741.4, Samples: 687, Complete: true}),
		rollout.Judge(spec().Rules[1], rollout.Reading{}, rollout.Reading{Value: 0.002, Samples: 687, Complete: true}),
	}}
	r.SteadySince = started.Add(9*time.Minute + 30*time.Second)
	r.PhaseSince = r.SteadySince
	s := liveSheet(r)
	plannedRollout(&s).Run.Rollout.Sluice.ActualShare = ptr(0.497)
	return s
}

func parkedSheet(t *testing.T, category rollout.Category) Sheet {
	r := parked(t, category, 10)
	if category == rollout.CapacityExhausted {
		r.Phase, r.Percent = rollout.PhaseChecking, 0
		r.Steps[0].Rows = nil
		r.Condition.Message = "step 1 needs 1 more replica of h100-80gb and 0 fit"
		r.RetryAt, r.RetryUntil = started.Add(12*time.Minute), started.Add(time.Hour)
	}
	return liveSheet(r)
}

func canceledSheet(t *testing.T) Sheet {
	r := demo(t)
	r.State, r.Phase, r.Percent, r.CompletedAt = rollout.Canceled, "", 10, started.Add(12*time.Minute)
	r.Steps[0].State = rollout.StepCanceled
	s := liveSheet(r)
	run := plannedRollout(&s).Run
	run.Requests, run.NonOK = ptr(int64(4211)), ptr(int64(0))
	run.Approved = []Granted{{By: "cleo", How: "merge", At: started.Add(-time.Minute)}}
	run.Steered = []Steer{{By: "ann", Verb: "cancel", Reason: "p95 is twice what it was", At: started.Add(12 * time.Minute)}}
	back := demo(t)
	back.ID, back.Spec.Source, back.Spec.Target = "rol_2", "dep_b", "dep_a"
	back.State, back.Phase, back.Percent, back.PhaseSince = rollout.Running, rollout.PhaseScaling, 90, started.Add(13*time.Minute)
	second := *plannedRollout(&s)
	second.Address, second.Reverses = "", "rol_1"
	second.Run = &Run{Rollout: wire.RolloutToAPI(back), Names: run.Names}
	s.Stacks[0].Rollouts = append(s.Stacks[0].Rollouts, second)
	return s
}

// takenBackSheet is a canceled rollout whose way back is completed.
func takenBackSheet(t *testing.T) Sheet {
	s := canceledSheet(t)
	back := &s.Stacks[0].Rollouts[1]
	r := demo(t)
	r.ID, r.Spec.Source, r.Spec.Target = "rol_2", "dep_b", "dep_a"
	r.State, r.Percent, r.CompletedAt, r.Step, r.Phase = rollout.Completed, 100, started.Add(20*time.Minute), 2, ""
	for i := range r.Steps {
		r.Steps[i] = rollout.StepRecord{State: rollout.StepPassed, StartedAt: started.Add(13 * time.Minute), CompletedAt: started.Add(20 * time.Minute)}
	}
	back.Run.Rollout = wire.RolloutToAPI(r)
	back.Run.Requests, back.Run.NonOK = ptr(int64(127)), ptr(int64(0))
	return s
}

func completedSheet(t *testing.T) Sheet {
	r := demo(t)
	r.State, r.Percent, r.CompletedAt, r.Step, r.Phase = rollout.Completed, 100, started.Add(25*time.Minute), 2, ""
	for i := range r.Steps {
		r.Steps[i] = rollout.StepRecord{State: rollout.StepPassed, StartedAt: started.Add(time.Duration(i) * 8 * time.Minute), CompletedAt: started.Add(time.Duration(i+1) * 8 * time.Minute)}
	}
	s := liveSheet(r)
	run := plannedRollout(&s).Run
	run.Requests, run.NonOK = ptr(int64(48211)), ptr(int64(0))
	run.Approved = []Granted{{By: "cleo", How: "merge", At: started.Add(-time.Minute)}}
	run.Steered = []Steer{{By: "ann", Verb: "resume", Reason: "the spike was the batch job", At: started.Add(9 * time.Minute)}}
	return s
}

func supersededSheet() Sheet {
	s := planSheet()
	s.Stage, s.Over = Superseded, Over{By: baseCommit, URL: "https://forge.example/acme/serving/commit/" + baseCommit, At: started.Add(time.Hour), Note: "this one was skipped: the policy is latest"}
	return s
}

func closedSheet() Sheet {
	s := planSheet()
	s.Stage, s.Over = Closed, Over{By: "ann", At: started.Add(time.Hour)}
	return s
}

// hostileSheet has one text of others at every place that can hold one.
func hostileSheet(t *testing.T, text string, stage Stage) Sheet {
	s := parkedSheet(t, rollout.MetricRegression)
	s.Stage = stage
	s.Revision = Revision{Repository: text, Commit: text, Branch: text, Base: text, BaseCommit: text, At: started}
	s.Marker = Marker{text, text}
	s.Approval = Approval{Mode: ByDigest, May: text, File: text, Plans: []PlanApproval{{Stack: text, Digest: text, Void: text}, {Stack: text, Granted: []Granted{{By: text, How: text, At: started}}}}}
	s.History = []Push{{Commit: text, Verdict: text, At: started}}
	s.Waiting, s.Over = []string{text}, Over{By: text, Note: text}
	s.Refused = []Notice{{text, text}}
	st := &s.Stacks[0]
	st.Name, st.Diff = text, "+"+text+"\n```\n"+text
	st.Changes = []Change{{Address: text, Action: planning.Create, ID: text, From: text, Held: text, Fields: []Field{{text, text, text}}}}
	st.Drift = []Drift{{text, text, text, text, text, text, started, text, text}}
	st.Policy = policy.Verdict{Remarks: []policy.Remark{{Severity: policy.Deny, Message: text, Rule: "x" + text, Address: text, Override: []string{text}}, {Severity: policy.Deny, Message: text, Rule: "lifted", Override: []string{text}}}}
	st.Overrides = []Override{{Rule: "lifted", By: text, Reason: text, At: started}}
	st.Diagnostics = []Diagnostic{{Severity: "warning", At: text, Summary: text, Text: "x" + text + "\n" + text}}
	r := plannedRollout(&s)
	r.Address, r.Endpoint, r.Reverses = text, text, text
	r.Journey.Findings = []planning.Finding{{Code: planning.Code(text), Severity: planning.Caution, Message: text, Remedy: text}, {Code: planning.Code(text), Severity: planning.Info, Message: text, Remedy: text}}
	r.Journey.Gates[0].Text, r.Journey.Totals.BreakerSignedBy = text, text
	r.Live = Live{Fit: Short, Shortfall: text, Warnings: []api.Warning{{Code: text, Message: text}}}
	run := r.Run
	run.Names = map[string]string{"dep_a": text, "dep_b": text}
	run.Steered = []Steer{{text, text, text, started}}
	run.Approved = []Granted{{By: text, How: text, At: started}}
	run.Events = []api.Event{{Type: text, Message: text, Reason: text, Name: text, DeploymentID: text, Paths: []string{text}, Sluice: &api.EventExtra{Actor: text}}}
	c := run.Rollout.Status.Condition
	c.Message, run.Rollout.ID = text, text
	run.Rollout.Status.Conditions = []api.Condition{{Type: text, Message: text}}
	run.Rollout.Status.Steps[0].FailureReason = text
	run.Rollout.Sluice.NextEvent = text
	run.Rollout.Status.Steps[0].Metrics = append(run.Rollout.Status.Steps[0].Metrics, api.MetricRow{Name: text, Operator: text, Threshold: ptr(1.0), Sluice: &api.RowExtra{Note: text}})
	if stage == Planned {
		planned := *r
		planned.Run = nil
		st.Rollouts = append(st.Rollouts, planned)
	}
	return s
}

// hostileName is what somebody might call a thing.
const hostileName = "`</details>` @acme/platform #12 GH-12 org/repo#1 <img src=x onerror=alert(1)> [a](http://evil.example) ![b](http://evil.example/p.png) https://evil.example www.evil.example ann@evil.example | \x1b[2J\u202eabc\n# big\n/approve\n```"

// manySheet moves n endpoints at once.
func manySheet(t *testing.T, n int, one Sheet) Sheet {
	t.Helper()
	many := one
	many.Stacks, many.Approval.Plans = nil, nil
	for i := range n {
		st := one.Stacks[0]
		st.Name = fmt.Sprintf("prod-%03d", i)
		st.Rollouts = append([]RolloutSheet(nil), st.Rollouts...)
		st.Rollouts[0].Endpoint = fmt.Sprintf("prod/chat-%03d", i)
		many.Stacks = append(many.Stacks, st)
		many.Approval.Plans = append(many.Approval.Plans, PlanApproval{Stack: st.Name, Digest: st.Rollouts[0].Journey.Digest})
	}
	return many
}
