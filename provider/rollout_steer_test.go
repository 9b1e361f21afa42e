package provider

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// from and to are a state and what is asked of it.
func from(state rollout.State, desired, token string) rolloutModel {
	return rolloutModel{ID: types.StringValue("rol_1"), State: types.StringValue(string(state)), DesiredState: types.StringValue(desired), ResumeToken: optionalString(token),
		Condition: types.ObjectNull(conditionType.AttrTypes), Journey: types.ListNull(journeyType)}
}

func to(desired, token string) rolloutModel { return from("", desired, token) }

// Every state × every change of desired_state and resume_token.
func TestWhatAnApplySendsToARollout(t *testing.T) {
	const no = ""
	working := []rollout.State{rollout.Running, rollout.Stabilizing}
	parks := []rollout.State{rollout.Paused, rollout.SystemPaused}
	type want struct {
		states  []rollout.State
		sends   steering
		refuses bool
	}
	for name, c := range map[string]struct {
		was, asked [2]string // desired_state, resume_token
		wants      []want
	}{
		"a plain apply lifts no park and restarts nothing": {[2]string{wantCompleted, no}, [2]string{wantCompleted, no}, []want{
			{append(append(working, parks...), rollout.Pending, rollout.Pausing, rollout.Cancelling), justWait, false},
			{[]rollout.State{rollout.Canceled, rollout.Completed}, nothing, false},
		}},
		"an old token lifts nothing":              {[2]string{wantCompleted, "monday"}, [2]string{wantCompleted, "monday"}, []want{{append(parks, working...), justWait, false}}},
		"a token that is taken out lifts nothing": {[2]string{wantCompleted, "monday"}, [2]string{wantCompleted, no}, []want{{parks, justWait, false}}},
		"a new token resumes": {[2]string{wantCompleted, "monday"}, [2]string{wantCompleted, "tuesday"}, []want{
			{append(parks, rollout.Pausing), sendResume, false}, {working, justWait, false},
			{[]rollout.State{rollout.Completed}, nothing, false}, {[]rollout.State{rollout.Canceled}, nothing, true},
		}},
		"from paused back to completed resumes": {[2]string{wantPaused, no}, [2]string{wantCompleted, no}, []want{
			{parks, sendResume, false}, {working, justWait, false}, {[]rollout.State{rollout.Canceled}, nothing, true},
		}},
		"paused": {[2]string{wantCompleted, no}, [2]string{wantPaused, no}, []want{
			{append(working, rollout.SystemPaused), sendPause, false}, {[]rollout.State{rollout.Paused}, nothing, false}, {[]rollout.State{rollout.Pausing}, justWait, false},
			{[]rollout.State{rollout.Pending, rollout.Cancelling}, justWait, true}, {[]rollout.State{rollout.Canceled, rollout.Completed}, nothing, true},
		}},
		"still paused": {[2]string{wantPaused, no}, [2]string{wantPaused, no}, []want{
			{working, sendPause, false}, {[]rollout.State{rollout.Paused, rollout.Canceled, rollout.Completed}, nothing, false},
		}},
		"paused with a new token is a contradiction": {[2]string{wantPaused, no}, [2]string{wantPaused, "tuesday"}, []want{{append(parks, working...), nothing, true}}},
		"promoted, once": {[2]string{wantCompleted, no}, [2]string{wantPromoted, no}, []want{
			{append(parks, working...), sendPromote, false}, {[]rollout.State{rollout.Completed}, nothing, false},
			{[]rollout.State{rollout.Pending, rollout.Pausing, rollout.Cancelling}, justWait, true}, {[]rollout.State{rollout.Canceled}, nothing, true},
		}},
		"promoted before: a park after it is not passed over": {[2]string{wantPromoted, no}, [2]string{wantPromoted, no}, []want{{append(parks, working...), justWait, false}}},
		"canceled": {[2]string{wantCompleted, no}, [2]string{wantCanceled, no}, []want{
			{append(append(working, parks...), rollout.Pausing), sendCancel, false}, {[]rollout.State{rollout.Cancelling}, justWait, false},
			{[]rollout.State{rollout.Canceled}, nothing, false}, {[]rollout.State{rollout.Completed}, nothing, true}, {[]rollout.State{rollout.Pending}, justWait, true},
		}},
		"canceled, and no way back": {[2]string{wantCanceled, no}, [2]string{wantCompleted, no}, []want{{[]rollout.State{rollout.Canceled}, nothing, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, w := range c.wants {
				for _, state := range w.states {
					s, refused := steer(from(state, c.was[0], c.was[1]), to(c.asked[0], c.asked[1]))
					require.Equal(t, w.sends, s, state)
					require.Equal(t, w.refuses, refused != "", "%s: %s", state, refused)
				}
			}
		})
	}
}

// Every control that a plan announces is one that the state machine takes.
func TestNothingIsPlannedThatTheEngineWouldRefuse(t *testing.T) {
	asks := map[steering]rollout.Happening{sendPause: rollout.AskedPause, sendResume: rollout.AskedResume, sendPromote: rollout.AskedPromote, sendCancel: rollout.AskedCancel}
	sent := map[steering]bool{}
	for _, state := range rollout.States() {
		for _, was := range []string{wantCompleted, wantPaused, wantPromoted, wantCanceled} {
			for _, want := range []string{wantCompleted, wantPaused, wantPromoted, wantCanceled} {
				for _, token := range []string{"", "new"} {
					s, refused := steer(from(state, was, ""), to(want, token))
					h, sends := asks[s]
					if !sends || refused != "" {
						continue
					}
					sent[s] = true
					_, ok := rollout.Next(state, h)
					require.True(t, ok, "%s in %s", h, state)
				}
			}
		}
	}
	require.Len(t, sent, 4)
}

// A park that came after the plan is seen by a person before it is lifted.
func TestAParkThatThePlanDidNotShowIsNotLifted(t *testing.T) {
	step, percent := 1, 50
	live := api.Rollout{ID: "rol_1", State: engineclient.StateSystemPaused, CurrentStep: &step, CurrentTrafficPercent: &percent,
		Status: api.RolloutStatus{Condition: &api.Condition{Category: "METRIC_REGRESSION"}}}
	var was rolloutModel
	was.apply(live)
	require.NoError(t, sendResume.stands(was, live))
	require.NoError(t, sendPromote.stands(was, live))
	later := live
	later.Status.Condition = &api.Condition{Category: "METRIC_REGRESSION", ObservedAt: api.At(live.Status.Condition.ObservedAt.AddDate(0, 0, 1))}
	require.ErrorContains(t, sendResume.stands(was, later), "Plan again")
	require.ErrorContains(t, sendPromote.stands(was, later), "Plan again")
	require.NoError(t, sendPause.stands(was, later), "a pause or a cancel passes over nothing")
	require.NoError(t, sendCancel.stands(was, later))
	over := live
	over.State = engineclient.StateCompleted
	require.ErrorContains(t, sendCancel.stands(was, over), "over")
	working := live
	working.State = engineclient.StateRunning
	was.apply(working)
	require.ErrorContains(t, sendPromote.stands(was, live), "Plan again", "parked since the plan")
}

// The number that a plan shows is the one that an apply waits by, unless the engine's
// own ladder is longer.
func TestTheTimeToWaitIsTheOneThatThePlanShows(t *testing.T) {
	spec, _ := wire.SpecFromAPI(good())
	j := planning.NewJourney(spec, planning.Known{}, rollout.DefaultTimings())
	require.Equal(t, planning.DefaultWait(j.Totals.LeastDuration), j.Totals.WaitLimit)
	m := rolloutModel{Facts: factsValue(j)}
	require.Equal(t, j.Totals.WaitLimit, waitLimit(m, api.Rollout{}))
	long := api.Rollout{Status: api.RolloutStatus{TotalSteps: 1000}}
	require.Equal(t, waitFor(long), waitLimit(m, long))
	asked := planning.NewJourney(spec, planning.Known{Timeout: time.Minute}, rollout.DefaultTimings())
	require.Equal(t, time.Minute, asked.Totals.WaitLimit)
}
