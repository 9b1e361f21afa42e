package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

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
// none is made twice. One that the forge refuses would be refused again: then the sign is all.
func (f *follower) sendAnswers(ctx context.Context, r *pullRecord) error {
	if err := f.gatherAnswers(ctx, r); err != nil {
		return err
	}
	var errs []error
	var left []answered
	for _, a := range r.Answers {
		err := f.sendAnswer(ctx, r.Number, a)
		if refusedForGood(err) {
			f.log.Warn("an answer is not taken", "pull", r.Number, "comment", a.Comment, "answer", a.Text, "error", err)
			err = nil
		}
		if err != nil {
			errs, left = append(errs, fmt.Errorf("answer comment %d: %w", a.Comment, err)), append(left, a)
			continue
		}
		f.react(ctx, r.Number, a.Comment, a.Sign)
	}
	r.Answers = left
	return errors.Join(errs...)
}

// sendAnswer says one, where a sign is not enough.
func (f *follower) sendAnswer(ctx context.Context, number int, a answered) error {
	if err := f.ledger.mayWrite(); err != nil || a.Text == "" && a.Lines == "" {
		return err
	}
	var said []string
	if a.Text != "" {
		said = append(said, a.Text)
	}
	marker := fmt.Sprintf("<!-- sluice answer=%d.%s -->", a.Comment, a.Mark)
	if _, err := forge.Upsert(ctx, f.forge, number, marker, marker+"\n"+render.Answer(said, a.Lines)); err != nil {
		return err
	}
	f.meters.reports.WithLabelValues(f.config.Name, "answer").Inc()
	return nil
}

// refusedForGood reports whether the forge will not take something that it was given: the
// talk is locked or full, or it is gone. A token that it does not know may be replaced, and
// what is not found may be there again when an incident of the forge is over.
func refusedForGood(err error) bool {
	var refused *forge.Refused
	return errors.As(err, &refused) && refused.Status != http.StatusUnauthorized && refused.Status != http.StatusNotFound
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
