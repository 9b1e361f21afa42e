package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// askRecord is what a person who may has asked for. It is recorded before it is done, so
// that a crash loses no word, and kept for a while with its answer.
type askRecord struct {
	ID       string // of the comment or the request, so that one that comes twice is one
	Stack    string
	Verb     Verb
	Selector string // endpoint, address or rollout; empty for all that the asker can mean
	Digest   string
	Rule     string
	Reason   string
	Who      string
	Via      string // comment, http
	Pull     int    // 0 for none
	Comment  int64
	At       time.Time

	Rollouts []string // that it acts on, settled at the first try
	Sent     []string // of those, the ones to which it was sent
	Reverses []reversal
	Answer   string
	Ended    time.Time // zero until it was answered
	Refused  string    // why not, when it was not done
}

// reversal is one rollout that is being taken back.
type reversal struct {
	Of  string // rollout
	By  string // the reverse one, once it is made
	Key string // idempotency key of its create
}

func askKey(k StackKey, id string) journal.Key {
	return journal.Key{Kind: kindAsk, Repository: k.Repository, Stack: k.Stack, Name: id}
}

// doAsks does what people have asked for, oldest first.
func (p *stackPass) doAsks(ctx context.Context) error {
	slices.SortFunc(p.asks, func(a, b askRecord) int { return a.At.Compare(b.At) })
	for i := range p.asks {
		a := &p.asks[i]
		if !a.Ended.IsZero() {
			if p.now().Sub(a.Ended) > keepPulls {
				p.batch.Delete = append(p.batch.Delete, askKey(p.k, a.ID))
			}
			continue
		}
		err := p.do(ctx, a)
		if err != nil && !settled(err) {
			return fmt.Errorf("%s asked by %s: %w", a.Verb, a.Who, err)
		}
		if err != nil {
			p.answer(a, "", err.Error())
		}
		p.batch.Put = append(p.batch.Put, record(askKey(p.k, a.ID), *a))
	}
	return nil
}

// answer ends an ask.
func (p *stackPass) answer(a *askRecord, done, refused string) {
	a.Ended, a.Answer, a.Refused = p.now(), done, refused
	text, severity := done, info
	if refused != "" {
		text, severity = "refused: "+refused, warning
	}
	p.tell(&p.batch, happening{
		Key: []string{a.ID}, Kind: "asked." + string(a.Verb), Stack: p.k.Stack, Severity: severity,
		Text: fmt.Sprintf("%s: %s asked by %s (%s): %s", p.k, a.Verb, inert(a.Who), a.Via, text),
	})
}

func (p *stackPass) do(ctx context.Context, a *askRecord) error {
	switch a.Verb {
	case Resume, Promote, Cancel:
		return p.steer(ctx, a)
	case Reverse:
		return p.reverse(ctx, a)
	case Approve:
		return p.approve(a)
	case Override:
		return p.override(a)
	case Retry:
		return p.again(a)
	case Suspend:
		p.s.Suspended = &suspension{Who: a.Who, Reason: a.Reason, At: a.At}
		p.answer(a, "suspended: nothing is started, and what runs is watched on. Go on with: "+p.way(Continue, ""), "")
	case Continue:
		p.s.Suspended = nil
		p.answer(a, "the suspension is over", "")
	case Replan:
		p.forget()
		p.answer(a, "planned anew", "")
	case Help:
		p.answer(a, "", "help is given where it was asked")
	}
	return nil
}

// scope is the rollouts that an ask can mean: those under way of the runs that its pull
// request brought, or of the stack.
func (p *stackPass) scope(a *askRecord, want func(*runRecord, *runRollout) bool) []*runRollout {
	var out []*runRollout
	for _, run := range p.runs {
		if a.Pull != 0 && !slices.Contains(run.Pulls, a.Pull) {
			continue
		}
		for i := range run.Rollouts {
			r := &run.Rollouts[i]
			if want(run, r) && (a.Selector == "" || slices.Contains([]string{r.Endpoint, planning.BareName(r.Endpoint), r.Address, r.ID, p.k.String() + "/" + r.Endpoint}, a.Selector)) {
				out = append(out, r)
			}
		}
	}
	return out
}

// choose settles which rollouts an ask acts on, so that a retry after a crash acts on the
// same ones.
func (p *stackPass) choose(ctx context.Context, a *askRecord, want func(*runRecord, *runRollout) bool) ([]*runRollout, error) {
	if err := p.widen(ctx, a); err != nil {
		return nil, err
	}
	found := p.scope(a, want)
	if len(a.Rollouts) > 0 {
		return slices.DeleteFunc(found, func(r *runRollout) bool { return !slices.Contains(a.Rollouts, r.ID) }), nil
	}
	if len(found) > 1 && a.Selector == "" && a.Verb != Cancel {
		return nil, refusef("several rollouts are meant (%s); name one", joined(names(found)))
	}
	for _, r := range found {
		a.Rollouts = append(a.Rollouts, r.ID)
	}
	if len(found) > 0 { // what is chosen stays chosen
		err := p.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(askKey(p.k, a.ID), *a)}})
		return found, err
	}
	return nil, nil
}

// widen takes in the newest runs that are over, since a rollout that is COMPLETED can
// still be taken back.
func (p *stackPass) widen(ctx context.Context, a *askRecord) error {
	if a.Verb != Reverse {
		return nil
	}
	for _, commit := range slices.Backward(p.s.Recent) {
		run, err := read[runRecord](ctx, p.ledger, runKey(p.k, commit))
		if err != nil {
			return err
		}
		if a.Pull == 0 && len(run.Rollouts) > 0 || slices.Contains(run.Pulls, a.Pull) {
			_, err := p.reopen(ctx, commit)
			return err
		}
	}
	return nil
}

func names(rs []*runRollout) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Endpoint+" "+r.ID)
	}
	return out
}

func underWay(_ *runRecord, r *runRollout) bool { return r.Ended.IsZero() }

// steer sends resume, promote or cancel to rollouts that are under way. The rollout is
// read before each, so that one whose answer was lost is not sent twice.
func (p *stackPass) steer(ctx context.Context, a *askRecord) error {
	chosen, err := p.choose(ctx, a, underWay)
	if err != nil {
		return err
	}
	if len(chosen) == 0 && len(a.Rollouts) == 0 {
		return refusef("no rollout of %s is under way", p.k)
	}
	for _, r := range chosen {
		if err := p.control(ctx, a, r); err != nil {
			return err
		}
	}
	p.answer(a, fmt.Sprintf("%s was sent to %s", a.Verb, joined(a.Rollouts)), "")
	return nil
}

// control sends one control.
func (p *stackPass) control(ctx context.Context, a *askRecord, r *runRollout) error {
	verb := map[Verb]planning.Control{Resume: planning.SendResume, Promote: planning.SendPromote, Cancel: planning.SendCancel}[a.Verb]
	if a.Verb == Reverse {
		verb = planning.SendCancel
	}
	live, err := p.engine.GetRollout(ctx, r.EndpointID, r.ID)
	if err != nil {
		return err
	}
	last := live.CurrentStep != nil && *live.CurrentStep == live.Status.TotalSteps-1
	if verb.IsThere(planning.StateOf(live), last) || slices.Contains(a.Sent, r.ID) {
		return nil
	}
	if a.Verb == Resume || a.Verb == Promote {
		if err := fresh(a, live); err != nil {
			return err
		}
	}
	reason := fmt.Sprintf("%s (%s): %s", inert(a.Who), a.Via, inert(a.Reason))
	in := journal.Intent{ID: a.ID + " " + r.ID + " " + verb.String() + " " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: verb.String() + "_rollout"}
	return p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
		body := api.Control{Reason: reason}
		var err error
		switch verb {
		case planning.SendResume:
			_, err = p.engine.ResumeRollout(ctx, r.EndpointID, r.ID, body)
		case planning.SendPromote:
			_, err = p.engine.PromoteRollout(ctx, r.EndpointID, r.ID, body)
		case planning.SendCancel:
			_, err = p.engine.CancelRollout(ctx, r.EndpointID, r.ID, body)
		case planning.JustWait, planning.Nothing, planning.SendPause:
		}
		if err != nil {
			return journal.Batch{}, err
		}
		a.Sent = append(a.Sent, r.ID)
		r.Steered = append(r.Steered, steered{Verb: a.Verb, Who: a.Who, Reason: a.Reason, At: p.now()})
		b := p.save()
		b.Put = append(b.Put, record(askKey(p.k, a.ID), *a))
		return b, nil
	})
}

// fresh refuses a word about a park that was said of an earlier one: a person has seen
// that one and not what holds the rollout now. Forges tell the time of a comment by the
// second.
func fresh(a *askRecord, live api.Rollout) error {
	if !parked(live.State) || live.PauseInfo == nil || !live.PauseInfo.PausedAt.Truncate(time.Second).After(a.At) {
		return nil
	}
	return refusef("rollout %s has parked again since that was said (at %s); look at it and say it again", live.ID, stamp(live.PauseInfo.PausedAt.Time))
}

// here refuses what was said on a pull request that did not bring the run: who may say it
// there, such as anybody but the author, is another question than here. The run may be told
// of its pull request in this very pass, after the asks.
func (p *stackPass) here(a *askRecord, run *runRecord) error {
	if a.Pull == 0 || slices.Contains(run.Pulls, a.Pull) {
		return nil
	}
	if r := p.pulls.known[a.Pull]; r != nil && r.awaits(p.k.Stack) && (run.Commit.ID == r.MergeCommit || slices.Contains(run.Arrived, r.MergeCommit)) {
		return nil
	}
	if len(run.Pulls) == 0 {
		return refusef("pull request %d did not bring commit %s, whose plan waits", a.Pull, short(run.Commit.ID))
	}
	var brought []string
	for _, n := range run.Pulls {
		brought = append(brought, fmt.Sprintf("pull request %d", n))
	}
	return refusef("pull request %d did not bring commit %s, whose plan waits: say it on %s", a.Pull, short(run.Commit.ID), joined(brought))
}

// approve lets the plan of the current run be applied.
func (p *stackPass) approve(a *askRecord) error {
	run := p.current()
	if run != nil {
		if err := p.here(a, run); err != nil {
			return err
		}
	}
	switch {
	case run == nil || !run.Acted.IsZero():
		return refusef("nothing of %s waits for an approval", p.k)
	case run.Digest == "" || !digestMeans(a.Digest, run.Digest):
		return refusef("%s is not the plan that waits: that is %s", planning.ShortDigest(a.Digest), planning.ShortDigest(run.Digest))
	}
	run.Approved = append(run.Approved, approval{Digest: run.Digest, Who: a.Who, Via: a.Via, At: a.At})
	p.answer(a, "plan "+planning.ShortDigest(run.Digest)+" is approved", "")
	return nil
}

// digestMeans reports whether a person's word names a digest: all of it or its first 12
// hex digits and more.
func digestMeans(word, digest string) bool {
	word, digest = strings.TrimPrefix(word, "sha256:"), strings.TrimPrefix(digest, "sha256:")
	return len(word) >= 12 && strings.HasPrefix(digest, word)
}

// override lifts a denial for the plan of the current run.
func (p *stackPass) override(a *askRecord) error {
	run := p.current()
	if run == nil || run.Digest == "" {
		return refusef("no plan of %s is denied", p.k)
	}
	if err := p.here(a, run); err != nil {
		return err
	}
	run.Overrides = append(run.Overrides, override{Rule: a.Rule, Who: a.Who, Reason: a.Reason, Digest: run.Digest, At: a.At})
	p.answer(a, fmt.Sprintf("rule %s is lifted for plan %s", inert(a.Rule), planning.ShortDigest(run.Digest)), "")
	return nil
}

// again allows the specs that a person has canceled or taken back.
func (p *stackPass) again(a *askRecord) error {
	var lifted []string
	for _, d := range p.allDecisions() {
		address := d.Address
		if a.Selector != "" && a.Selector != address && a.Selector != d.Rollout {
			continue
		}
		delete(p.decisions, d.about())
		p.batch.Delete = append(p.batch.Delete, decisionKey(p.k, d.about()))
		for _, b := range slices.Clone(p.s.Bound) {
			if b.Address.String() == address {
				p.s.unbind(b.Address)
			}
		}
		p.s.Again = append(p.s.Again, allowedAgain{Spec: d.Spec, At: p.now()})
		lifted = append(lifted, address)
	}
	if len(lifted) == 0 {
		return refusef("nothing of %s was canceled or taken back", p.k)
	}
	p.forget()
	p.answer(a, joined(lifted)+" may start again", "")
	return nil
}

// refusal is an answer to an ask that cannot be done.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refusef(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// settled reports whether an error is an answer about what was asked, which a repetition
// would not change, as opposed to none. A key that is refused and an address where no
// engine answers are none: they are told of the pass and not of the stack.
func settled(err error) bool {
	var r *refusal
	if errors.As(err, &r) {
		return true
	}
	return refusedBy(err) && !shutOut(err)
}

// refusedBy reports whether the engine has answered a call with no: nothing was changed.
func refusedBy(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused) && refused.Status >= 400 && refused.Status < 500 &&
		refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout && !engineclient.IsUnreachable(err)
}

// shutOut reports whether an error says that this is not the engine, or not with this key.
func shutOut(err error) bool {
	var wrong *engineclient.WrongAddress
	var notJSON *engineclient.NotJSON
	var refused *api.Error
	return errors.As(err, &wrong) || errors.As(err, &notJSON) || errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden)
}
