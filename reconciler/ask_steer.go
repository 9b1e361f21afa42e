package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// scope is the rollouts under way that an ask can mean: of the runs that its pull request
// brought, or of the stack.
func (p *stackPass) scope(a *askRecord) []*runRollout {
	var out []*runRollout
	for _, run := range p.runs {
		if a.Pull != 0 && !slices.Contains(run.Pulls, a.Pull) {
			continue
		}
		for i := range run.Rollouts {
			if r := &run.Rollouts[i]; r.Ended.IsZero() && p.means(a, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// means reports whether an ask can mean a rollout, by what it was chosen to act on before or
// by the name that was said.
func (p *stackPass) means(a *askRecord, r *runRollout) bool {
	if len(a.Rollouts) > 0 {
		return slices.Contains(a.Rollouts, r.ID)
	}
	return a.Selector == "" || slices.Contains(p.names(p.k.Stack, *r), a.Selector)
}

// choose settles which rollouts an ask acts on, so that a retry after a crash acts on the
// same ones.
func (p *stackPass) choose(ctx context.Context, a *askRecord) ([]*runRollout, error) {
	found := p.scope(a)
	if len(a.Rollouts) > 0 || len(found) == 0 {
		return found, nil
	}
	if len(found) > 1 && a.Selector == "" && a.Verb != Cancel {
		return nil, refusef("several rollouts are meant (%s); name one: %s", joined(names(found)), p.way(a.Verb, found[0].Endpoint))
	}
	return found, p.chosen(ctx, a, found...)
}

// chosen records what an ask acts on.
func (p *stackPass) chosen(ctx context.Context, a *askRecord, rs ...*runRollout) error {
	for _, r := range rs {
		a.Rollouts = append(a.Rollouts, r.ID)
	}
	return p.ledger.write(ctx, journal.Batch{Put: []journal.Record{record(askKey(p.k, a.ID), *a)}})
}

func names(rs []*runRollout) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Endpoint+" "+r.ID)
	}
	return out
}

// steer sends resume, promote or cancel to rollouts that are under way. The rollout is
// read before each, so that one whose answer was lost is not sent twice.
func (p *stackPass) steer(ctx context.Context, a *askRecord) error {
	chosen, err := p.choose(ctx, a)
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
	if verb == planning.SendCancel && live.State == engineclient.StatePending {
		return p.callOff(ctx, a, r)
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

// callOff deletes a rollout that was made and has moved nothing: there is no split to
// freeze, and it would hold its endpoint. It is a decision like a cancel.
func (p *stackPass) callOff(ctx context.Context, a *askRecord, r *runRollout) error {
	in := journal.Intent{ID: a.ID + " " + r.ID + " delete " + token(), Repository: p.k.Repository, Stack: p.k.Stack, Address: r.Address, Verb: "delete_rollout"}
	return p.ledger.intend(ctx, in, func(ctx context.Context) (journal.Batch, error) {
		if err := p.engine.DeleteRollout(ctx, r.EndpointID, r.ID, ""); err != nil && !engineclient.IsNotFound(err) {
			return journal.Batch{}, err
		}
		r.State, r.Ended, r.Since = "DELETED", p.now(), p.now()
		r.Steered = append(r.Steered, steered{Verb: a.Verb, Who: a.Who, Reason: a.Reason, At: p.now()})
		p.decide(decisionRecord{Address: r.Address, Spec: r.Spec, Verb: Cancel, Rollout: r.ID, Who: a.Who, Reason: a.Reason, At: a.At})
		p.forget()
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
