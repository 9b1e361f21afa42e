package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// The lease lasts leaseFor and is renewed in a third of it. A write at the engine needs
// leaseMargin left, so that a process that was frozen in between notices.
const (
	leaseFor    = 30 * time.Second
	leaseMargin = 5 * time.Second
)

// ErrNotHolder means that this process may not write: its lease has run out.
var ErrNotHolder = errors.New("this reconciler does not hold the lease, so it writes nothing")

// errUnrecorded means that the journal did not take what has changed. What is known
// in memory is then not what is recorded: it is read again before anything else is written.
var errUnrecorded = errors.New("the journal did not take it")

// ledger is the journal under the lease of this process: every batch carries its fence.
type ledger struct {
	journal.Journal
	who journal.Holder
	now func() time.Time

	mu    sync.Mutex
	lease journal.Lease
	left  []string // intents whose outcome was not recorded
}

// take acquires the lease, or tells who holds it.
func (l *ledger) take(ctx context.Context) error {
	lease, err := l.Acquire(ctx, l.who, l.now(), leaseFor)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lease = lease
	return nil
}

// renew makes the lease last.
func (l *ledger) renew(ctx context.Context) error {
	lease, err := l.Renew(ctx, l.held(), l.now(), leaseFor)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease.Fence == lease.Fence {
		l.lease = lease
	}
	return nil
}

// giveBack ends the lease, so that the next process need not wait for it.
func (l *ledger) giveBack(ctx context.Context) error {
	held := l.held()
	l.mu.Lock()
	l.lease.Expires = time.Time{}
	l.mu.Unlock()
	if held.Fence == 0 {
		return nil
	}
	return l.Release(ctx, held)
}

func (l *ledger) held() journal.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease
}

// mayWrite is asked before every write at the engine or a forge.
func (l *ledger) mayWrite() error {
	if held := l.held(); held.Fence == 0 || l.now().Add(leaseMargin).After(held.Expires) {
		return ErrNotHolder
	}
	return nil
}

// write commits a batch under the lease. An empty one costs nothing.
func (l *ledger) write(ctx context.Context, b journal.Batch) error {
	if len(b.Put)+len(b.Delete)+len(b.Begin)+len(b.End)+len(b.Entries) == 0 {
		return nil
	}
	if err := l.Commit(ctx, l.held().Fence, b); err != nil {
		return fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	return nil
}

// leave notes an intent whose outcome was not recorded.
func (l *ledger) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = append(l.left, id)
}

// endLeft ends the intents that this process has left open: what they came to is looked at
// again by the pass that begins.
func (l *ledger) endLeft(ctx context.Context) error {
	l.mu.Lock()
	left := l.left
	l.mu.Unlock()
	if len(left) == 0 {
		return nil
	}
	open, err := l.Open(ctx)
	if err != nil {
		return err
	}
	var b journal.Batch
	for _, in := range open {
		if slices.Contains(left, in.ID) {
			b.End = append(b.End, journal.Outcome{Intent: in.ID, Result: "void", At: l.now()})
		}
	}
	if err := l.write(ctx, b); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = slices.DeleteFunc(l.left, func(id string) bool { return slices.Contains(left, id) })
	return nil
}

// intend records an intent, does it, and records its outcome with what the outcome
// changes. After a crash between the two, whoever comes next finds the intent open and
// looks at the world before anything is repeated.
func (l *ledger) intend(ctx context.Context, in journal.Intent, do func(ctx context.Context) (journal.Batch, error)) error {
	return l.intendWith(ctx, in, journal.Batch{}, do)
}

// intendWith records something else together with the intent.
func (l *ledger) intendWith(ctx context.Context, in journal.Intent, with journal.Batch, do func(ctx context.Context) (journal.Batch, error)) error {
	if err := l.mayWrite(); err != nil {
		return err
	}
	in.At = l.now()
	with.Begin = append(with.Begin, in)
	if err := l.write(ctx, with); err != nil {
		l.leave(in.ID) // it may be in
		return fmt.Errorf("record the intent to %s %s: %w", in.Verb, in.Address, err)
	}
	if err := l.mayWrite(); err != nil { // the disk may have been slow
		l.leave(in.ID)
		return err
	}
	after, err := do(ctx)
	end := journal.Outcome{Intent: in.ID, Result: "done", At: l.now()}
	if err != nil {
		end.Result, end.Detail = "refused", record(journal.Key{}, err.Error()).Value
		if !settled(err) && !refusedBy(err) {
			l.leave(in.ID) // it may have had its effect
			return err
		}
	}
	after.End = append(after.End, end)
	if werr := l.write(context.WithoutCancel(ctx), after); werr != nil {
		l.leave(in.ID)
		return errors.Join(err, fmt.Errorf("record the outcome of %s %s: %w", in.Verb, in.Address, werr))
	}
	return err
}
