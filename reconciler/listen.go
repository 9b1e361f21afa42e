package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// lateListing is how much later than it was made a forge may list a comment: that far back
// comments are asked for again.
const lateListing = 5 * time.Minute

// mostObeyed bounds the comments with commands that are remembered of one pull request.
const mostObeyed = 500

// obeyed is a comment whose commands were heard.
type obeyed struct {
	Comment int64
	At      time.Time // when it was changed last, as it was heard
}

// listen reads the comments of a pull request that are new and does, or asks for, what
// the commands in them say. A comment is heard once, by its id. One whose author cannot be
// looked up holds up none of others; later ones of the same author wait for it.
func (f *follower) listen(ctx context.Context, r *pullRecord) error {
	comments, err := f.forge.Comments(ctx, r.Number, r.Since)
	if err != nil {
		return err
	}
	var errs []error
	var waiting []string // authors
	var newest time.Time
	for _, c := range comments {
		if c.Bot || c.UpdatedAt.Before(r.Since) {
			continue
		}
		if c.UpdatedAt.After(newest) {
			newest = c.UpdatedAt
		}
		if r.hasObeyed(c.ID) || c.At.Before(r.Listens) || slices.Contains(waiting, c.Author) {
			continue
		}
		err := f.hear(ctx, r, c)
		var limited *forge.Limited
		if errors.Is(err, errUnrecorded) || errors.As(err, &limited) {
			return err
		}
		if err != nil {
			errs, waiting = append(errs, err), append(waiting, c.Author)
		}
	}
	if len(errs) == 0 {
		r.heardUntil(newest)
	}
	return errors.Join(errs...)
}

func (r *pullRecord) hasObeyed(comment int64) bool {
	return slices.ContainsFunc(r.Obeyed, func(o obeyed) bool { return o.Comment == comment })
}

// heardUntil moves on what is asked for, once all that was listed was heard. Whoever edits
// a comment makes it newer than those between, so that no single one may move it.
func (r *pullRecord) heardUntil(newest time.Time) {
	since := newest.Add(-lateListing).Truncate(time.Second)
	slices.SortStableFunc(r.Obeyed, func(a, b obeyed) int { return a.At.Compare(b.At) })
	if over := len(r.Obeyed) - mostObeyed; over > 0 { // what is forgotten is not listened to again
		if last := r.Obeyed[over-1].At.Truncate(time.Second).Add(time.Second); last.After(since) {
			since = last
		}
	}
	if since.After(r.Since) {
		r.Since = since
	}
	r.Obeyed = slices.DeleteFunc(r.Obeyed, func(o obeyed) bool { return o.At.Before(r.Since) })
}

// hear does what one comment says, and records that it was heard together with what
// follows from it. When it fails nothing of it was heard. Talk is not remembered.
func (f *follower) hear(ctx context.Context, r *pullRecord, c forge.Comment) error {
	commands := CommandsOf(c)
	if len(commands) == 0 {
		return nil
	}
	var b journal.Batch
	was := *r
	for _, command := range commands {
		if err := f.obey(ctx, r, c, command, &b); err != nil {
			*r = was
			return err
		}
	}
	r.Obeyed = append(r.Obeyed, obeyed{c.ID, c.UpdatedAt})
	b.Put = append(b.Put, record(pullKey(f.config.Name, r.Number), *r))
	if err := f.ledger.write(ctx, b); err != nil {
		return err
	}
	f.react(ctx, r.Number, c.ID, forge.Seen)
	return nil
}

// react is a courtesy: when it fails nothing is lost.
func (f *follower) react(ctx context.Context, number int, comment int64, s forge.Sign) {
	if f.ledger.mayWrite() != nil {
		return
	}
	if err := f.forge.React(ctx, number, comment, s); err != nil {
		f.log.Debug("a comment could not be reacted to", "comment", comment, "error", err)
	}
}

// may asks the permission table about a user of the forge. A lookup that is refused means
// no; one that fails is an error, and is tried again.
func (f *follower) may(ctx context.Context, user, author string, v Verb) (Allowed, error) {
	allowed, err := f.permissions().Allows(ctx, Person{Name: user, Door: AtForge, Author: author}, v, f.forge)
	var refused *forge.Refused
	if errors.As(err, &refused) {
		return Allowed{Why: err.Error()}, nil
	}
	return allowed, err
}

// obey does one command.
func (f *follower) obey(ctx context.Context, r *pullRecord, c forge.Comment, command Command, b *journal.Batch) error {
	if command.Problem != "" {
		if role, err := f.forge.Role(ctx, c.Author); err == nil && role == forge.None {
			command.Problem = ""
		}
		r.answer(c, command.Problem, forge.Denied)
		return nil
	}
	allowed, err := f.may(ctx, c.Author, r.Author, command.Verb)
	if err != nil {
		return err
	}
	if !allowed.OK {
		if role, err := f.forge.Role(ctx, c.Author); err == nil && role == forge.None {
			allowed.Why = "" // a stranger gets a sign and no comment
		}
		r.answer(c, allowed.Why, forge.Denied)
		return nil
	}
	switch {
	case command.Verb == Help:
		r.answer(c, "", forge.Done)
		r.Answers[len(r.Answers)-1].Lines = CommandHelp()
	case command.Verb == Replan && r.State == forge.IsOpen:
		return f.planAgain(ctx, r, c)
	case command.Verb == Approve && r.State == forge.IsOpen:
		f.approveOpen(r, c, command)
	case command.Verb == Override:
		return f.hearOverride(ctx, r, c, command, b)
	case steers(command.Verb):
		return f.handRollout(ctx, r, c, command, b)
	default:
		return f.handOn(ctx, r, c, command, b)
	}
	return nil
}

// planAgain makes the plan of an open pull request anew. That of a fork takes somebody who
// may write, who vouches for the head that is there now.
func (f *follower) planAgain(ctx context.Context, r *pullRecord, c forge.Comment) error {
	if r.Fork && f.config.Forge.Forks != PlanForks {
		allowed, err := Granted(ctx, []Grant{{Role: forge.Write}}, Person{Name: c.Author, Door: AtForge}, f.forge)
		if err != nil {
			return err
		}
		if !allowed.OK {
			r.answer(c, "The pull request comes from a fork; its plan takes somebody who may write.", forge.Denied)
			return nil
		}
		if !r.headSeen(r.Now, c.At) {
			r.answer(c, "The head has moved since the comment showed it. Look at what is there now, and say it again.", forge.Denied)
			return nil
		}
		r.Vouched = r.Now
	}
	r.Again = true
	r.answer(c, "", forge.Done)
	return nil
}

// approveOpen takes in an approval of what an open pull request would do. It is carried
// to the run that its merge begins.
func (f *follower) approveOpen(r *pullRecord, c forge.Comment, command Command) {
	for _, p := range r.Plans {
		if p.Digest != "" && command.Approves(p.Digest) {
			r.Approved = append(r.Approved, approval{Digest: p.Digest, Who: c.Author, Via: "comment", At: c.At})
			r.answer(c, "", forge.Done)
			return
		}
	}
	var now []string
	for _, p := range r.Plans {
		if p.Digest != "" {
			now = append(now, planning.ShortDigest(p.Digest))
		}
	}
	text := command.Digest + " is not the plan that stands now"
	if len(now) > 0 {
		text += "; that is " + joined(now)
	}
	r.answer(c, text+".", forge.Denied)
}

// askOf is what a command asks of a stack.
func (f *follower) askOf(r *pullRecord, c forge.Comment, command Command, stack string) askRecord {
	return askRecord{
		ID: fmt.Sprintf("comment %d line %d", c.ID, command.Line), Stack: stack, Verb: command.Verb, Selector: command.Selector, Digest: command.Digest,
		Rule: command.Rule, Reason: command.Reason, Who: c.Author, Via: fmt.Sprintf("comment on pull request %d", r.Number), Pull: r.Number, Comment: c.ID, Line: command.Line, At: c.At,
	}
}
