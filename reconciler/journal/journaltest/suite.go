package journaltest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// Opener opens the journal of one test; called again it opens the same one, as another
// process or a start after a crash does. The first call finds it empty.
type Opener func(t *testing.T) journal.Journal

// Suite runs what the reconciler relies on. fresh returns an Opener of a journal of its
// own.
func Suite(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, sc := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"E1: a frozen process that thaws after another took its place writes nothing", thaws},
		{"the fence rises with every lease and is kept over a restart", fences},
		{"a lease is another's once it has expired, and not before", expires},
		{"a clock that steps back keeps nobody waiting longer than a lease lasts", stepsBack},
		{"I7: who holds the journal is told with host, since and heartbeat", toldHolder},
		{"I7: a force release is refused while the heartbeat is fresh", forced},
		{"a lease that was given back is nobody's and writes nothing more", released},
		{"many that want the lease at once: one gets it", oneGetsIt},
		{"E5, E7: a crash between an intent and its outcome leaves it open", crashed},
		{"an intent begun again is open and the newer one", begunAgain},
		{"a batch is all or nothing", allOrNothing},
		{"a batch is done in its order and may be repeated", repeated},
		{"F15, I5: keys are compared field by field, whatever is in them", keys},
		{"a key that is not text is refused, and text of others is kept as text", texts},
		{"a list has the fields that were asked for, in order, over many pages", lists},
		{"a reader may write while it reads", writesWhileReading},
		{"a history pages from the newest without loss", history},
		{"a prune takes the oldest, so many at once, and leaves what is open", prunes},
		{"what was written is there after a restart, byte by byte", restarts},
		{"writes of one process at once are all kept", concurrent},
		{"a context that has ended writes nothing", ended},
	} {
		t.Run(sc.name, func(t *testing.T) { sc.run(t, fresh(t)) })
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

const ttl = 30 * time.Second

func holder(id string) journal.Holder {
	return journal.Holder{ID: id, Host: "host-" + id, PID: 4711, Since: start.Add(-time.Hour)}
}

// opened opens the journal for the length of the test.
func opened(t *testing.T, open Opener) journal.Journal {
	t.Helper()
	j := open(t)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

// leased opens the journal and takes its lease.
func leased(t *testing.T, open Opener) (journal.Journal, journal.Lease) {
	t.Helper()
	j := opened(t, open)
	l, err := j.Acquire(t.Context(), holder("a"), start, ttl)
	require.NoError(t, err)
	return j, l
}

func put(k journal.Key, value string) journal.Batch {
	return journal.Batch{Put: []journal.Record{{Key: k, Value: []byte(value)}}}
}

var one = journal.Key{Kind: "stack", Repository: "models", Stack: "prod", Name: "chat"}

// all reads a sequence to its end.
func all[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for v, err := range seq {
		require.NoError(t, err)
		out = append(out, v)
	}
	return out
}

// everything is all that a journal shows, for comparisons.
type everything struct {
	Records []journal.Record
	Open    []journal.Intent
	Entries []journal.Entry
}

func everythingIn(t *testing.T, j journal.Journal) everything {
	t.Helper()
	open, err := j.Open(context.Background())
	require.NoError(t, err)
	return everything{all(t, j.List(context.Background(), journal.Key{})), open, all(t, j.History(context.Background(), journal.Query{}))}
}
