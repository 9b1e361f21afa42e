package reconciler

import (
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

// happening is something that people may want to hear of: a line of history, and a
// notification. Key tells two happenings apart; its parts are never joined to a text that
// is shown, and hold no clocks.
type happening struct {
	Key      []string
	Kind     string // source.…, run.…, rollout.…, drift.…, prune.…
	Stack    string
	Endpoint string
	Rollout  string
	Commit   string
	Severity notify.Severity
	Text     string
	URL      string // where people talk about it
	Fields   map[string]string
}

const (
	info    = notify.Info
	warning = notify.Warning
	urgent  = notify.Urgent
)

// tell puts a happening into a batch, beside the change of state that it tells: both are
// recorded or none is.
func (f *follower) tell(b *journal.Batch, h happening) {
	now := f.now()
	b.Entries = append(b.Entries, journal.Entry{
		At: now, Repository: f.config.Name, Stack: h.Stack, Endpoint: h.Endpoint, Commit: h.Commit, Kind: h.Kind, Text: h.Text,
	})
	b.Put = append(b.Put, f.outbox.Enqueue(notify.Event{
		Key: append([]string{h.Kind}, h.Key...), Kind: h.Kind, At: now, Repository: f.config.Name, Stack: h.Stack, Endpoint: h.Endpoint,
		Commit: h.Commit, RolloutID: h.Rollout, Severity: h.Severity, Title: title(h.Text), Text: h.Text, URL: h.URL, Fields: h.Fields,
	})...)
	f.log.Info(h.Text, "kind", h.Kind, "stack", h.Stack, "endpoint", h.Endpoint, "rollout", h.Rollout, "commit", short(h.Commit))
}

// title is the first sentence.
func title(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return first
}

// short is a commit for people.
func short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}

// refName is a ref for people.
func refName(ref string) string {
	for _, p := range []string{"refs/heads/", "refs/tags/"} {
		if s, ok := strings.CutPrefix(ref, p); ok {
			return s
		}
	}
	return ref
}
