package reconciler

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// newOutbox makes the places that hear of events.
func (r *Reconciler) newOutbox(out io.Writer) *notify.Outbox {
	if out == nil {
		out = os.Stdout
	}
	read := func(s Secret) (string, error) { return s.Read(r.getenv) }
	return notify.NewOutbox(notify.Options{Journal: r.ledger, Write: r.ledger.write, Destinations: r.traced(Destinations(r.config.Notify, Senders{Read: read, Now: r.now, Out: out}))})
}

// remind puts the reminders of the parks that still stand into the batch.
func (p *stackPass) remind(ctx context.Context) error {
	for _, run := range p.runs {
		for _, r := range run.Rollouts {
			if r.Category == "" || !r.Ended.IsZero() {
				continue
			}
			records, err := p.outbox.Remind(ctx, p.parkEvent(run, r), p.now())
			if err != nil {
				return fmt.Errorf("remind of %s: %w", r.ID, err)
			}
			p.batch.Put = append(p.batch.Put, records...)
		}
	}
	return nil
}

// parkEvent is the event of a park, as it was told first.
func (p *stackPass) parkEvent(run *runRecord, r runRollout) notify.Event {
	text := r.Endpoint + ": " + p.parkText(run, r, "is still parked")
	return notify.Event{
		Key: append([]string{kindParked}, momentKey(run, r)...), Kind: kindParked, At: r.Since,
		Repository: p.k.Repository, Stack: p.k.Stack, Endpoint: r.Endpoint, Commit: run.Commit.ID, RolloutID: r.ID, Severity: notify.Urgent, Title: title(text), Text: text, URL: p.talk(run),
	}
}
