package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// watch reads the rollouts of the stack's open runs once and records what is new. It
// waits for nothing: the next pass looks again. One that cannot be read keeps none of the
// others from being seen.
func (p *stackPass) watch(ctx context.Context) error {
	var errs []error
	for _, run := range p.runs {
		for i := range run.Rollouts {
			if run.Rollouts[i].Ended.IsZero() {
				look := func(ctx context.Context) error { return p.look(ctx, run, &run.Rollouts[i]) }
				errs = append(errs, p.within(ctx, "look", look, ofRollout.String(run.Rollouts[i].ID)))
			}
		}
	}
	return errors.Join(errs...)
}

// look reads one rollout.
func (p *stackPass) look(ctx context.Context, run *runRecord, r *runRollout) error {
	live, err := p.engine.GetRollout(ctx, r.EndpointID, r.ID)
	if engineclient.IsNotFound(err) {
		if err := p.engine.VerifyProject(ctx); err != nil {
			return err
		}
		r.State, r.Ended, r.Since = "DELETED", p.now(), p.now()
		p.decide(decisionRecord{Address: r.Address, Spec: r.Spec, Verb: Cancel, Rollout: r.ID, Reason: "its record was deleted", At: p.now()})
		p.say(run, *r, "rollout.deleted", warning, fmt.Sprintf("rollout %s of %s: its record was deleted at the engine", r.ID, r.Endpoint))
		return nil
	}
	if err != nil {
		return fmt.Errorf("read rollout %s: %w", r.ID, err)
	}
	p.rollouts[r.ID] = live
	before := *r
	r.see(live)
	if r.moment() == before.moment() && !engineclient.Terminal(live.State) {
		return nil
	}
	r.Since = p.now()
	if engineclient.Terminal(live.State) {
		r.Ended = p.endOf(live)
		p.count(ctx, r, live)
	}
	p.tellMoment(ctx, run, before, r, live)
	return nil
}

// endOf is when a rollout ended.
func (p *stackPass) endOf(live api.Rollout) time.Time {
	if live.CompletedAt != nil && !live.CompletedAt.IsZero() {
		return live.CompletedAt.Time
	}
	return p.now()
}

// see takes over what an engine says of a rollout.
func (r *runRollout) see(live api.Rollout) {
	r.State = engineclient.Short(live.State)
	r.Step, r.Percent, r.Phase, r.Category, r.Why = -1, 0, "", "", ""
	if live.CurrentStep != nil {
		r.Step = *live.CurrentStep
	}
	if live.CurrentTrafficPercent != nil {
		r.Percent = *live.CurrentTrafficPercent
	}
	if live.Sluice != nil {
		r.Phase = live.Sluice.Phase
	}
	if parked(live.State) {
		park := render.ParkOf(live, render.Options{})
		r.Category, r.Why = park.Category, clip(sentences(park.Message, park.Retry), longestWhy)
	}
}

// longestWhy bounds what is told of a park's cause, in characters.
const longestWhy = 400

// sentences are texts one after the other, without those that are empty.
func sentences(texts ...string) string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	for i := range texts {
		texts[i] = strings.TrimSuffix(texts[i], ".")
	}
	return strings.Join(texts, ". ")
}

// parkText is a park as it is told wherever it stands: where, why, and what can be done.
func (p *stackPass) parkText(run *runRecord, r runRollout, verb string) string {
	what := r.Category
	if r.Why != "" {
		what += ": " + r.Why
	}
	return fmt.Sprintf("rollout %s of %s %s at %d %%: %s. The split stays as it is until somebody decides: %s", r.ID, r.Endpoint, verb, r.Percent, what, p.choices(run, r))
}

// moment is what makes a report new: never a clock, never a text.
type moment struct {
	State, Category string
	Step, Percent   int
}

func (r runRollout) moment() moment { return moment{r.State, r.Category, r.Step, r.Percent} }

func parked(state string) bool {
	return state == engineclient.StatePaused || state == engineclient.StateSystemPaused
}

// tellMoment tells what is new about a rollout.
func (p *stackPass) tellMoment(ctx context.Context, run *runRecord, before runRollout, r *runRollout, live api.Rollout) {
	who := ""
	if r.State != before.State && (parked(live.State) || live.State == engineclient.StateCanceled || before.State == "PAUSED" || before.State == "SYSTEM_PAUSED") {
		who = p.actor(ctx, *r, live)
	}
	reason := reasonOf(live)
	if by, ok := r.steeredTo(live.State); ok && who != "" { // the engine knows this process's key only
		who, reason = by.Who, by.Reason
	}
	text := fmt.Sprintf("%s: rollout %s is %s", r.Endpoint, r.ID, render.Progress(live))
	if who != "" {
		text += ", by " + inert(who)
	}
	kind, severity := "rollout."+strings.ToLower(r.State), info
	switch live.State {
	case engineclient.StateSystemPaused, engineclient.StatePaused:
		kind, severity = kindParked, urgent
		text = r.Endpoint + ": " + p.parkText(run, *r, "is parked")
		if who != "" {
			text = r.Endpoint + ": " + p.parkText(run, *r, "is paused by "+inert(who))
		}
	case engineclient.StateCanceled:
		severity = warning
	case engineclient.StateCompleted:
		text = fmt.Sprintf("%s: rollout %s is COMPLETED after %s", r.Endpoint, r.ID, planning.Span(r.Ended.Sub(live.CreatedAt.Time).Round(time.Second)))
	}
	p.say(run, *r, kind, severity, text)
	if live.State == engineclient.StateCanceled && !r.Replaced {
		p.decide(decisionRecord{Address: r.Address, Spec: r.Spec, Verb: Cancel, Rollout: r.ID, Who: who, Reason: reason, At: r.Ended})
	}
}

// steeredTo is who has brought a rollout to a state through this process: the newest word
// about it, when that word leads there.
func (r runRollout) steeredTo(state string) (steered, bool) {
	if len(r.Steered) == 0 {
		return steered{}, false
	}
	by := r.Steered[len(r.Steered)-1]
	leads := map[string][]Verb{engineclient.StateCanceled: {Cancel, Reverse}, engineclient.StateRunning: {Resume, Promote}, engineclient.StateStabilizing: {Resume, Promote}, engineclient.StateCompleted: {Resume, Promote}}
	return by, slices.Contains(leads[state], by.Verb)
}

func reasonOf(live api.Rollout) string {
	if live.PauseInfo != nil {
		return live.PauseInfo.Reason
	}
	return ""
}

// say tells a happening of a run's rollout, under the run's commit.
func (p *stackPass) say(run *runRecord, r runRollout, kind string, s notify.Severity, text string) {
	p.tell(&p.batch, happening{
		Key: momentKey(run, r), Kind: kind, Stack: p.k.Stack, Endpoint: r.Endpoint, Rollout: r.ID, Commit: run.Commit.ID, Severity: s, Text: text, URL: p.talk(run),
	})
}

// choices are what a person can do about a parked rollout, as it is typed.
func (p *stackPass) choices(run *runRecord, r runRollout) string {
	if n := len(run.Pulls); p.forge != nil && n > 0 {
		return fmt.Sprintf("on pull request %d, /sluice resume %[2]s, /sluice promote %[2]s, /sluice cancel %[2]s because … or /sluice reverse %[2]s because …", run.Pulls[n-1], r.Endpoint)
	}
	return fmt.Sprintf("sluice rollout %[1]s --resume, sluice rollout %[1]s --promote, sluice rollout %[1]s --cancel --reason … or sluice reconcile reverse %[2]s --endpoint %[1]s --reason …", r.Endpoint, p.k)
}

// talk is the address of the pull request that has brought a run, empty for none.
func (p *stackPass) talk(run *runRecord) string {
	for _, n := range slices.Backward(run.Pulls) {
		if r := p.pulls.known[n]; r != nil && r.URL != "" {
			return r.URL
		}
	}
	return ""
}

// kindParked is the kind of the event that a rollout waits for a person.
const kindParked = "rollout.parked"

// momentKey tells what is new about a rollout from all else.
func momentKey(run *runRecord, r runRollout) []string {
	m := r.moment()
	return []string{run.Commit.ID, r.ID, m.State, m.Category, fmt.Sprint(m.Step), fmt.Sprint(m.Percent)}
}

// actor is who has brought a rollout where it is, from the endpoint's feed. An engine
// that does not tell leaves it open; that is never an error.
func (p *stackPass) actor(ctx context.Context, r runRollout, live api.Rollout) string {
	types := map[string][]string{
		engineclient.StatePaused:   {"rollout.pausing", "rollout.paused"},
		engineclient.StateCanceled: {"rollout.canceled"},
		engineclient.StateRunning:  {"rollout.resumed", "rollout.promoted"},
	}[live.State]
	if types == nil {
		return ""
	}
	for e, err := range p.engine.Events(ctx, r.EndpointID, engineclient.EventQuery{SubjectID: r.ID, Types: types, PageSize: 1}) {
		if err != nil || e.Sluice == nil {
			return ""
		}
		return render.Inert(e.Sluice.Actor)
	}
	return ""
}

// count adds what clients got while the rollout ran, for the receipt.
func (p *stackPass) count(ctx context.Context, r *runRollout, live api.Rollout) {
	from := live.CreatedAt.Time
	if live.StartedAt != nil {
		from = live.StartedAt.Time
	}
	a, err := p.engine.Analytics(ctx, r.EndpointID, from, r.Ended)
	if err != nil {
		return // a receipt without numbers says so
	}
	r.Requests, r.Failed = requestsOf(a)
}

// requestsOf are the requests that ended in a stretch of time, and those of them that
// failed; nil where an engine does not tell.
func requestsOf(a api.Analytics) (all, failed *int64) {
	m := a.Metrics.RequestMetrics
	n, err := strconv.ParseInt(m.TotalRequests, 10, 64)
	if err != nil {
		return nil, nil
	}
	bad, err := strconv.ParseInt(m.FailedRequests, 10, 64)
	if err != nil {
		return &n, nil
	}
	return &n, &bad
}
