package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

// The watch can fail: each of these reconcilers is wrong in one way, and is noticed within
// a few days of the same world in which the right one is not.
func TestAWrongReconcilerIsNoticed(t *testing.T) {
	if underRace != "" {
		t.Skip(underRace)
	}
	const seeds = 3
	for _, m := range []struct {
		name  string
		acts  int // of people between two passes
		wrong wrongness
		says  string
	}{
		// beside one that is under way, or a second time after it: which comes first is the draw's
		{"without adoption", 4, wrongness{unseen: unrecorded, loses: everySecondCreate()}, "is submitted"},
		{"ignores the lease", 12, wrongness{journal: func(m *journaltest.Memory) journal.Journal { return &unfenced{m} }}, "without the lease"},
		{"goes against what people decide", 12, wrongness{between: tryAgain}, "a second time"},
		{"tells a status in each pass", 2, wrongness{between: forgetStatuses}, "was set"},
		{"knows no freeze", 4, wrongness{config: func(c *Config) { c.Freezes = nil }}, "during the freeze"},
		{"tells everything twice", 2, wrongness{config: func(c *Config) {
			c.Notify = append(c.Notify, NotifyConfig{Name: "again", Kind: Stdout})
		}}, "is sent 2 times to 1 places"},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds) {
				w := newWeek(t, seed+1, weekSize{repositories: 4, long: 3 * 24 * time.Hour, pace: 20 * time.Minute, acts: m.acts}, m.wrong)
				w.unmended = true
				if seen := w.play(); len(seen) > 0 {
					require.Contains(t, strings.Join(seen, "\n"), m.says)
					return
				}
			}
			t.Errorf("%d worlds have not noticed it", seeds)
		})
	}
}

// unfenced is a journal as one believes in who does not look at the lease: it is always
// the own one.
type unfenced struct{ *journaltest.Memory }

func (u *unfenced) newest(ctx context.Context) journal.Fence {
	l, _ := u.Holder(ctx)
	return l.Fence
}

// Renew always makes a lease last, and takes it from nobody.
func (u *unfenced) Renew(_ context.Context, l journal.Lease, now time.Time, ttl time.Duration) (journal.Lease, error) {
	l.Renewed, l.Expires = now, now.Add(1000*ttl)
	return l, nil
}

// Commit writes under whatever lease there is.
func (u *unfenced) Commit(ctx context.Context, _ journal.Fence, b journal.Batch) error {
	return u.Memory.Commit(ctx, u.newest(ctx), b)
}

// unrecorded hides the rollouts that the journal does not have: those whose answer, or
// whose record, was lost.
func unrecorded(w *week, r api.Rollout) bool {
	for rec := range w.journal.List(w.t.Context(), journal.Key{Kind: kindRun}) { //nolint:errcheck // of a journal in memory
		if bytes.Contains(rec.Value, []byte(r.ID)) {
			return false
		}
	}
	return true
}

// everySecondCreate loses every second answer to the create of a rollout, the first one too.
func everySecondCreate() func(*http.Request) bool {
	n := 0
	return func(req *http.Request) bool {
		if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/rollouts") {
			return false
		}
		n++
		return n%2 == 1
	}
}

// A world that loses every second answer to the create of a rollout is none in which the
// right reconciler is taken for a wrong one.
func TestLostAnswersToCreatesAreNothingToNotice(t *testing.T) {
	if underRace != "" {
		t.Skip(underRace)
	}
	w := newWeek(t, 1, weekSize{repositories: 4, long: 3 * 24 * time.Hour, pace: 20 * time.Minute, acts: 4}, wrongness{loses: everySecondCreate()})
	require.Empty(t, w.play())
}

// tryAgain allows whatever a person has decided against, as if somebody had asked for it.
func tryAgain(w *week, r *Reconciler) {
	for rec := range w.journal.List(w.t.Context(), journal.Key{Kind: kindDecision}) { //nolint:errcheck // of a journal in memory
		d, err := decode[decisionRecord](rec.Key, rec.Value)
		if err != nil {
			continue
		}
		_ = r.recordAsk(w.t.Context(), StackKey{rec.Key.Repository, rec.Key.Stack}, askRecord{ID: "http again " + d.Rollout, Stack: rec.Key.Stack, Verb: Retry, Who: "nobody", Via: "http", At: w.now})
	}
}

// forgetStatuses lets a reconciler post as if it had posted nothing.
func forgetStatuses(w *week, r *Reconciler) {
	forgetKind(w, r, kindPosted)
	for _, f := range r.followers {
		for _, p := range f.pulls.known {
			p.Statuses = nil
		}
	}
}

func forgetKind(w *week, r *Reconciler, kind string) {
	var b journal.Batch
	for rec := range w.journal.List(w.t.Context(), journal.Key{Kind: kind}) { //nolint:errcheck // of a journal in memory
		b.Delete = append(b.Delete, rec.Key)
	}
	_ = r.ledger.write(w.t.Context(), b)
}

// without is a list of rollouts as somebody sees it to whom some are unseen.
func without(answer []byte, unseen func(api.Rollout) bool) []byte {
	var list map[string]json.RawMessage
	var all []api.Rollout
	if json.Unmarshal(answer, &list) != nil || json.Unmarshal(list["data"], &all) != nil {
		return answer
	}
	kept, err := json.Marshal(slices.DeleteFunc(all, unseen))
	if err != nil {
		return answer
	}
	list["data"] = kept
	out, err := json.Marshal(list)
	if err != nil {
		return answer
	}
	return out
}
