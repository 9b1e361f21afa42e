package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// listen reads the comments of a pull request that are new and does, or asks for, what
// the commands in them say. A comment is heard once, by its id.
func (f *follower) listen(ctx context.Context, r *pullRecord) error {
	comments, err := f.forge.Comments(ctx, r.Number, r.Since)
	if err != nil {
		return err
	}
	for _, c := range comments {
		if c.Bot || slices.Contains(r.Seen, c.ID) || c.At.Before(r.Listens) {
			continue
		}
		if err := f.hear(ctx, r, c); err != nil {
			return err
		}
	}
	return nil
}

// hear does what one comment says, and records that it was heard together with what
// follows from it.
func (f *follower) hear(ctx context.Context, r *pullRecord, c forge.Comment) error {
	var b journal.Batch
	commands := CommandsOf(c)
	for _, command := range commands {
		if err := f.obey(ctx, r, c, command, &b); err != nil {
			return err
		}
	}
	r.Seen = append(r.Seen, c.ID)
	if n := len(r.Seen); n > 500 { // those at or after Since; older ones are not listed
		r.Seen = slices.Delete(r.Seen, 0, n-500)
	}
	if c.UpdatedAt.After(r.Since) {
		r.Since = c.UpdatedAt
	}
	b.Put = append(b.Put, record(pullKey(f.config.Name, r.Number), *r))
	if err := f.ledger.write(ctx, b); err != nil {
		return err
	}
	if len(commands) > 0 {
		f.react(ctx, r.Number, c.ID, forge.Seen)
	}
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
		f.handOn(r, c, command, b)
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
		if r.Shown != r.Now || c.At.Before(r.ShownAt.Truncate(time.Second)) {
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

// hearOverride lifts a denial for the plans that stand, when the denial itself names the
// one who asks.
func (f *follower) hearOverride(ctx context.Context, r *pullRecord, c forge.Comment, command Command, b *journal.Batch) error {
	var judged []judgement
	for _, p := range r.Plans {
		judged = append(judged, f.judgedOf(r, p.Stack)...)
	}
	allowed, err := f.mayLift(ctx, judged, command.Rule, Person{Name: c.Author, Door: AtForge, Author: r.Author}, f.forge)
	if err != nil {
		return err
	}
	switch {
	case !allowed.OK:
		r.answer(c, allowed.Why, forge.Denied)
	case r.State != forge.IsOpen:
		f.handOn(r, c, command, b)
	default:
		for _, p := range r.Plans {
			if p.Digest != "" {
				r.Overrides = append(r.Overrides, override{Rule: command.Rule, Who: c.Author, Reason: command.Reason, Digest: p.Digest, At: c.At})
			}
		}
		r.answer(c, "", forge.Done)
	}
	return nil
}

// judgedOf is what the policies said of the plan that stands for a stack: of the pull
// request while it is open, of the stack afterwards.
func (f *follower) judgedOf(r *pullRecord, stack string) []judgement {
	if r.State == forge.IsOpen {
		if p := f.pulls.plans[r.Number]; p != nil {
			for _, s := range p.stacks {
				if s.c.Name == stack {
					return s.plan.judged
				}
			}
		}
		return nil
	}
	return f.stackJudged(f.key(stack))
}

func (r *Reconciler) stackJudged(k StackKey) []judgement {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.plans[k]; p != nil {
		return p.judged
	}
	return nil
}

// mayLift decides whether somebody may lift a rule's denials: every one that the word
// would lift, since policies may have rules of the same name.
func (f *follower) mayLift(ctx context.Context, judged []judgement, rule string, who Person, ranks Ranks) (Allowed, error) {
	out := Allowed{Why: fmt.Sprintf("No rule named %s denies the plan that stands now.", render.Inert(rule))}
	for _, j := range judged {
		for _, remark := range j.verdict.Remarks {
			if remark.Severity != policy.Deny || remark.Rule != rule {
				continue
			}
			allowed, err := j.mayLift(ctx, remark, who, ranks)
			if err != nil || !allowed.OK {
				return allowed, err
			}
			out = allowed
		}
	}
	return out, nil
}

// mayLift decides about one denial: it names who in general, and the configuration of its
// own policy says who that is.
func (j judgement) mayLift(ctx context.Context, remark policy.Remark, who Person, ranks Ranks) (Allowed, error) {
	rule := render.Inert(remark.Rule)
	if len(remark.Override) == 0 {
		return Allowed{Why: fmt.Sprintf("Rule %s lets nobody lift it.", rule)}, nil
	}
	for _, name := range remark.Override {
		if allowed, err := Granted(ctx, j.by.Overriders[name], who, ranks); err != nil || allowed.OK {
			return allowed, err
		}
	}
	return Allowed{Why: fmt.Sprintf("%s may not lift rule %s: that takes %s.", who.Name, rule, joined(remark.Override))}, nil
}

// askOf is what a command asks of a stack.
func (f *follower) askOf(r *pullRecord, c forge.Comment, command Command, stack string) askRecord {
	return askRecord{
		ID: fmt.Sprintf("comment %d line %d", c.ID, command.Line), Stack: stack, Verb: command.Verb, Selector: command.Selector, Digest: command.Digest,
		Rule: command.Rule, Reason: command.Reason, Who: c.Author, Via: fmt.Sprintf("comment on pull request %d", r.Number), Pull: r.Number, Comment: c.ID, At: c.At,
	}
}

// handOn hands a command to the stacks that it can mean.
func (f *follower) handOn(r *pullRecord, c forge.Comment, command Command, b *journal.Batch) {
	given := 0
	for _, p := range r.Plans {
		a := f.askOf(r, c, command, p.Stack)
		switch {
		case a.Selector == p.Stack, a.Selector == f.key(p.Stack).String():
			a.Selector = ""
		case f.isStack(a.Selector):
			continue
		}
		b.Put = append(b.Put, record(askKey(f.key(p.Stack), a.ID), a))
		given++
	}
	if given == 0 {
		r.answer(c, "This pull request changes nothing here that the command could act on.", forge.Denied)
	}
}

func (f *follower) isStack(name string) bool {
	return slices.ContainsFunc(f.config.Stacks, func(c StackConfig) bool {
		return c.Name == name || f.key(c.Name).String() == name
	})
}

// answered is what is to be said about a command.
type answered struct {
	Comment int64
	Mark    string // tells two answers to one comment apart
	Text    string // a sentence; empty where a sign is enough
	Lines   string
	Sign    forge.Sign
}

// answer notes what is to be said about a command; it is said by sendAnswers.
func (r *pullRecord) answer(c forge.Comment, text string, sign forge.Sign) {
	r.Answers = append(r.Answers, answered{Comment: c.ID, Mark: fmt.Sprint(len(r.Answers)), Text: text, Sign: sign})
}

// sendAnswers says what became of commands: by a sign, and by a comment of its own where
// nothing was done or something was asked. Each is found again by its marker, so that
// none is made twice.
func (f *follower) sendAnswers(ctx context.Context, r *pullRecord) error {
	if err := f.gatherAnswers(ctx, r); err != nil {
		return err
	}
	for len(r.Answers) > 0 {
		a := r.Answers[0]
		if err := f.ledger.mayWrite(); err != nil {
			return err
		}
		if a.Text != "" || a.Lines != "" {
			marker := fmt.Sprintf("<!-- sluice answer=%d.%s -->", a.Comment, a.Mark)
			var said []string
			if a.Text != "" {
				said = append(said, a.Text)
			}
			if _, err := forge.Upsert(ctx, f.forge, r.Number, marker, marker+"\n"+render.Answer(said, a.Lines)); err != nil {
				return fmt.Errorf("answer comment %d: %w", a.Comment, err)
			}
			f.meters.reports.WithLabelValues(f.config.Name, "answer").Inc()
		}
		f.react(ctx, r.Number, a.Comment, a.Sign)
		r.Answers = r.Answers[1:]
	}
	return nil
}

// gatherAnswers takes over what the stacks have done of what was asked for here.
func (f *follower) gatherAnswers(ctx context.Context, r *pullRecord) error {
	for _, p := range r.Plans {
		asks, err := readAll[askRecord](ctx, f.ledger, journal.Key{Kind: kindAsk, Repository: f.config.Name, Stack: p.Stack})
		if err != nil {
			return err
		}
		for _, a := range asks {
			if a.Pull != r.Number || a.Ended.IsZero() || slices.Contains(r.Told, p.Stack+" "+a.ID) {
				continue
			}
			out := answered{Comment: a.Comment, Mark: p.Stack, Sign: forge.Done}
			if a.Refused != "" {
				out.Text, out.Sign = a.Refused, forge.Denied
			}
			r.Answers = append(r.Answers, out)
			r.Told = append(r.Told, p.Stack+" "+a.ID)
			if n := len(r.Told); n > 200 {
				r.Told = slices.Delete(r.Told, 0, n-200)
			}
		}
	}
	return nil
}
