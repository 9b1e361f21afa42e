package reconciler

import (
	"context"
	"fmt"
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
