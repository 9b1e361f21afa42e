package reconciler

import (
	"net/http"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// hooks takes webhooks: POST /hooks/REPOSITORY. A delivery is nothing but a hint: the next
// pass comes at once and looks for itself, so one that is lost, doubled or forged changes
// nothing.
func (r *Reconciler) hooks() http.Handler {
	hooks := map[string]forge.Hook{}
	for _, f := range r.followers {
		if h := r.hookers[f.config.Name]; h != nil && f.config.Forge != nil && f.config.Forge.WebhookSecret.Given() {
			hooks[f.config.Name] = h
		}
	}
	return forge.Receive(hooks, func(name string, d forge.Delivery) {
		r.meters.hooks.WithLabelValues(name, "taken").Inc()
		for _, f := range r.followers {
			if f.config.Name == name {
				r.log.Debug("a webhook came", "repository", name, "kind", d.Kind, "delivery", d.ID)
				f.lookSoon()
				f.hasten()
			}
		}
	}, forge.ReceiveLimits{})
}

// lookSoon makes the next pass look at the forge too, whatever its interval is.
func (f *follower) lookSoon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hinted = true
}

// wasHinted takes the hint.
func (f *follower) wasHinted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	hinted := f.hinted
	f.hinted = false
	return hinted
}
