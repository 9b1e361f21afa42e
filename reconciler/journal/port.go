// Package journal keeps what the reconciler must not forget: intents before effects,
// their outcomes, decisions of people, what was observed and what was reported. It has
// one writer: every commit carries the fence of the lease under which it was decided,
// and is refused when a newer lease exists.
package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Journal is the store. It is safe for concurrent use by one process.
type Journal interface {
	// Acquire takes the lease when it is free, expired, or the holder's own, and returns
	// it with a fence that is higher than all before. Else the error is *Held. Clocks may
	// differ or step back: a heartbeat further in the future than the lease lasts counts
	// as expired too, so that nobody waits longer than that. What keeps two apart is the
	// fence, not the clock.
	Acquire(ctx context.Context, who Holder, now time.Time, ttl time.Duration) (Lease, error)
	// Renew makes a lease last longer; *Fenced when a newer one exists.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) (Lease, error)
	// Release gives the lease back; one that is not the newest is left alone. From then on
	// nothing is written under its fence any more.
	Release(ctx context.Context, l Lease) error
	// ForceRelease takes the lease from a holder that does not answer and returns what it
	// was. It is *Held while the last heartbeat is less than stale old, and ErrNone when
	// nobody has it. Nothing is written under the old fence any more, whoever thaws.
	ForceRelease(ctx context.Context, now time.Time, stale time.Duration) (Lease, error)
	// Holder tells whose the lease is; ErrNone when it is nobody's.
	Holder(ctx context.Context) (Lease, error)

	// Commit does all of a batch or nothing, in the order deletes, puts, begins, ends,
	// entries. *Fenced when the fence is not the newest, *Bad when the batch itself is
	// wrong, ErrUnavailable when the disk or the database fails: whether the batch is in
	// is then not known, and it may be committed again as it is; only its entries would
	// stand twice.
	Commit(ctx context.Context, f Fence, b Batch) error
	// Get reads a record; ErrNone when there is none.
	Get(ctx context.Context, k Key) ([]byte, error)
	// List reads the records whose key has all fields that are given in the pattern, in
	// the order of kind, repository, stack and name.
	List(ctx context.Context, pattern Key) iter.Seq2[Record, error]

	// Open lists the intents without an outcome, oldest first.
	Open(ctx context.Context) ([]Intent, error)
	// History lists entries, newest first.
	History(ctx context.Context, q Query) iter.Seq2[Entry, error]
	// Prune deletes entries and closed intents from before an instant, at most so many,
	// the oldest first; it returns how many went.
	Prune(ctx context.Context, f Fence, before time.Time, most int) (int, error)
	Close() error
}

// Key names a record. It is compared field by field and never as a joined string.
type Key struct{ Kind, Repository, Stack, Name string }

// Record is a value under its key: JSON of the reconciler's own.
type Record struct {
	Key   Key
	Value []byte
}

// Fence tells the lease under which a batch was decided.
type Fence int64

// Holder is a process that may write.
type Holder struct {
	ID    string // unique to the process
	Host  string
	PID   int
	Since time.Time
}

// Lease is the right to write until it expires or a newer one exists.
type Lease struct {
	Holder  Holder
	Fence   Fence
	Renewed time.Time
	Expires time.Time
}

// Batch is what one decision records at once.
type Batch struct {
	Put     []Record
	Delete  []Key
	Begin   []Intent  // intents, before their effects
	End     []Outcome // outcomes, after them
	Entries []Entry   // history
}

// Intent is an effect that is about to be tried. One without an outcome may have had
// its effect: who finds it looks at the world first. Begun again under the same ID it
// replaces what was there and is open.
type Intent struct {
	ID         string // unique, chosen by the caller from what is intended
	Repository string
	Stack      string
	Address    string // of the declared thing, or of the pull request
	Verb       string // create_endpoint, create_rollout, start_rollout, comment …
	Detail     []byte // JSON
	At         time.Time
}

// Outcome ends an intent. Another one for an intent that has ended replaces the first;
// one for an intent that was never begun is *Bad.
type Outcome struct {
	Intent string
	Result string // done, refused, void
	Detail []byte // JSON; such as the id that was made
	At     time.Time
}

// Entry is one line of history.
type Entry struct {
	Seq        int64 // given by the journal
	At         time.Time
	Repository string
	Stack      string
	Endpoint   string
	Commit     string
	Kind       string
	Text       string
	Detail     []byte // JSON
}

// Query narrows a history; empty fields match all.
type Query struct {
	Repository, Stack, Endpoint, Kind string
	Before                            int64 // sequence; 0 for the newest
	Most                              int   // 0 for all
}

// ErrNone means that there is no such record.
var ErrNone = errors.New("no such record in the journal")

// ErrUnavailable means that the disk or the database below fails for now.
var ErrUnavailable = errors.New("the journal cannot be written or read now")

// Bad is a batch that no journal takes: a key that is not text, an outcome without its
// intent.
type Bad struct{ Why string }

func (b *Bad) Error() string { return "the journal refuses the batch: " + b.Why }

// Held is the refusal of a lease that another one has.
type Held struct{ By Lease }

func (h *Held) Error() string {
	return fmt.Sprintf("another reconciler writes here: %s; its lease ends at %s unless it is renewed", h.By, h.By.Expires.UTC().Format(time.RFC3339))
}

// Fenced is the refusal of a write under a lease that is not the newest.
type Fenced struct{ Mine, Newest Fence }

func (f *Fenced) Error() string {
	return fmt.Sprintf("this reconciler has lost its lease (fence %d, newest %d); nothing was written", f.Mine, f.Newest)
}
