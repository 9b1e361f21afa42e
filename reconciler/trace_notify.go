package reconciler

import (
	"context"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// tracedNotifier makes a span of each notification.
type tracedNotifier struct {
	notify.Notifier
	spans
	destination string
}

// Notify sends one.
func (n tracedNotifier) Notify(ctx context.Context, e notify.Event) error {
	return n.within(ctx, "notify", func(ctx context.Context) error { return n.Notifier.Notify(ctx, e) },
		ofDestination.String(n.destination), ofEvent.String(e.Kind), ofRepository.String(e.Repository), ofStack.String(e.Stack))
}

// traced are destinations whose notifications have spans.
func (s spans) traced(destinations []notify.Destination) []notify.Destination {
	if s.tracer == nil {
		return destinations
	}
	for i, d := range destinations {
		destinations[i].Notifier = tracedNotifier{d.Notifier, s, d.Name}
	}
	return destinations
}
