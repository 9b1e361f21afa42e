package reconciler

import (
	"io"
	"net/http"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// Senders are what notifications travel by.
type Senders struct {
	Read   func(Secret) (string, error) // a secret, each time that it is needed
	Client *http.Client                 // nil for one of its own
	Now    func() time.Time
	Out    io.Writer // of the kind stdout
}

// Destinations are the places of a configuration that hear of events.
func Destinations(configs []NotifyConfig, s Senders) []notify.Destination {
	var out []notify.Destination
	for _, c := range configs {
		to := notify.Destination{Name: c.Name, Events: c.Events, Remind: c.Remind}
		address := func() (string, error) { return s.Read(c.URL) }
		switch c.Kind {
		case Webhook:
			w := &notify.Webhook{URL: address, Client: s.Client, Now: s.Now}
			if c.Sign.Given() {
				w.Sign = func() (string, error) { return s.Read(c.Sign) }
			}
			to.Notifier = w
		case Slack:
			to.Notifier = &notify.Slack{URL: address, Client: s.Client}
		case Stdout:
			to.Notifier = &notify.Stream{Out: s.Out}
		}
		out = append(out, to)
	}
	return out
}
