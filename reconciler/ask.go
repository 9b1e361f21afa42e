package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
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
	Via      string // comment on pull request N, or viaHTTP
	Pull     int    // 0 for none
	Comment  int64
	Line     int // in the comment
	At       time.Time

	Rollouts []string         // that it acts on, settled at the first try
	Sent     []string         // of those, the ones to which it was sent
	Way      *api.RolloutSpec // back, of a reverse
	Planless bool             // a pass was waited for to know what Git wants of the side that is gone back to
	Answer   string
	Ended    time.Time // zero until it was answered
	Refused  string    // why not, when it was not done
}

// viaHTTP is the way of what a key has asked for.
const viaHTTP = "http"

func askKey(k StackKey, id string) journal.Key {
	return journal.Key{Kind: kindAsk, Repository: k.Repository, Stack: k.Stack, Name: id}
}

// doAsks does what people have asked for, oldest first. What cannot be done now holds up
// those words alone that are about the same rollouts.
func (p *stackPass) doAsks(ctx context.Context) error {
	slices.SortStableFunc(p.asks, func(a, b askRecord) int { // forges tell the time by the second
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Comment, b.Comment), cmp.Compare(a.Line, b.Line))
	})
	var errs []error
	for i := range p.asks {
		a := &p.asks[i]
		if !a.Ended.IsZero() {
			if p.now().Sub(a.Ended) > keepPulls {
				p.batch.Delete = append(p.batch.Delete, askKey(p.k, a.ID))
			}
			continue
		}
		if slices.ContainsFunc(p.asks[:i], func(b askRecord) bool { return b.Ended.IsZero() && sameRollouts(*a, b) }) && len(errs) > 0 {
			continue // in their order
		}
		err := p.do(ctx, a)
		if err != nil && (!settled(err) || engineclient.IsStale(err) && p.now().Sub(a.At) < patience) {
			errs = append(errs, fmt.Errorf("%s asked by %s: %w", a.Verb, a.Who, err))
			if errors.Is(err, errUnrecorded) || errors.Is(err, ErrNotHolder) {
				return errors.Join(errs...)
			}
			continue
		}
		if err != nil {
			p.answer(a, "", err.Error())
		}
		p.batch.Put = append(p.batch.Put, record(askKey(p.k, a.ID), *a))
	}
	return errors.Join(errs...)
}

// parkedToo tells who wanted a parked rollout to go on how that is said.
func (p *stackPass) parkedToo() string {
	for _, run := range p.runs {
		for _, r := range run.Rollouts {
			if r.Ended.IsZero() && r.Category != "" {
				return "; " + p.parkText(run, r, "is parked")
			}
		}
	}
	return ""
}

// patience is how long a word is tried again that crosses with other writes.
const patience = time.Hour

// sameRollouts reports whether two words may be about one rollout: as far as it was settled
// which, else by what was said.
func sameRollouts(a, b askRecord) bool {
	if len(a.Rollouts) > 0 && len(b.Rollouts) > 0 {
		return slices.ContainsFunc(a.Rollouts, func(id string) bool { return slices.Contains(b.Rollouts, id) })
	}
	return a.Selector == "" || b.Selector == "" || a.Selector == b.Selector
}

// answer ends an ask.
func (p *stackPass) answer(a *askRecord, done, refused string) {
	a.Ended, a.Answer, a.Refused = p.now(), done, refused
	text, severity := done, info
	why := ""
	if a.Reason != "" {
		why = ", since: " + inert(a.Reason)
	}
	if refused != "" {
		text, severity = "refused: "+refused, warning
	}
	p.tell(&p.batch, happening{
		Key: []string{a.ID}, Kind: "asked." + string(a.Verb), Stack: p.k.Stack, Severity: severity,
		Text: fmt.Sprintf("%s: %s asked by %s (%s)%s: %s", p.k, a.Verb, inert(a.Who), a.Via, why, text),
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
		return p.again(ctx, a)
	case Suspend:
		p.s.Suspended = &suspension{Who: a.Who, Reason: a.Reason, At: a.At}
		p.answer(a, "suspended: nothing is started, and what runs is watched on. Go on with: "+p.way(Continue, ""), "")
	case Continue:
		if p.s.Suspended == nil {
			return refusef("%s is not suspended%s", p.k, p.parkedToo())
		}
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
