package reconciler

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// newOutbox makes the places that hear of events.
func newOutbox(places []NotifyConfig, l *ledger, getenv func(string) string, out io.Writer) (*notify.Outbox, error) {
	if out == nil {
		out = os.Stdout
	}
	o := notify.Options{Journal: l, Write: l.write}
	for _, c := range places {
		n, err := newNotifier(c, getenv, out)
		if err != nil {
			return nil, fmt.Errorf("notify %s: %w", c.Name, err)
		}
		o.Destinations = append(o.Destinations, notify.Destination{Name: c.Name, Notifier: n, Events: c.Events, Remind: c.Remind})
	}
	return notify.NewOutbox(o), nil
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
	text := fmt.Sprintf("%s: rollout %s is still parked: %s", r.Endpoint, r.ID, r.Category)
	return notify.Event{
		Key: []string{"rollout.parked", run.Commit.ID, r.ID, r.State, r.Category, fmt.Sprint(r.Step)}, Kind: "rollout.parked", At: r.Since,
		Repository: p.k.Repository, Stack: p.k.Stack, Endpoint: r.Endpoint, Commit: run.Commit.ID, RolloutID: r.ID, Severity: notify.Urgent, Title: text, Text: text,
	}
}

// newNotifier makes one place that hears of events.
func newNotifier(c NotifyConfig, getenv func(string) string, out io.Writer) (notify.Notifier, error) {
	read := func(s Secret) notify.Secret {
		if !s.Given() {
			return nil
		}
		return func() (string, error) { return s.Read(getenv) }
	}
	switch c.Kind {
	case Webhook:
		return &notify.Webhook{URL: read(c.URL), Sign: read(c.Sign)}, nil
	case Slack:
		return &notify.Slack{URL: read(c.URL)}, nil
	case Stdout:
		return &notify.Stream{Out: out}, nil
	}
	return nil, fmt.Errorf("there is no kind %q", c.Kind)
}
