package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// largestGroup bounds a group, and so how long its first member waits for the others.
const largestGroup = 256

// group puts commits that arrive while another one is written into one transaction,
// which is one sync of the disk for all of them. It has no goroutine and no timer: the
// callers write. One that finds nobody writing writes at once, alone; those that come
// meanwhile queue, and the first of them writes for all when it is done. So a lone
// commit waits for nothing, and commits are made in the order in which they came.
type group struct {
	mu      sync.Mutex
	writing bool
	queue   []*pending
	written Written
}

// Written counts what a store has done since it was opened.
type Written struct {
	Commits      uint64 // changes that were taken
	Transactions uint64 // that they went into: as many syncs of the disk
}

// Written tells how many changes were committed, in how many transactions.
func (s *SQLite) Written() Written {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	return s.group.written
}

// pending is one commit and its answer.
type pending struct {
	statements []statement
	err        error           // the answer; set before done is closed
	done       chan struct{}   // closed once the answer stands
	lead       chan []*pending // gets the group that this commit's caller is to write, itself in it
}

// errAbandoned is the answer of a group whose writer did not come to an end: its
// transaction was rolled back.
var errAbandoned = errors.New("the write was abandoned")

// Commit writes a change, all of it or nothing. It returns ErrConflict when a row
// was changed since it was read, and ErrExists when a new one's name, or an
// endpoint's rollout slot, is taken; ErrUnavailable when the disk fails; ErrFenced when
// another holder has taken the store over. Nil means that it is on the disk.
//
// Concurrent commits share a transaction, but no fate: each is checked by itself, in the
// order in which they came, against what those before it wrote, and one that is refused
// leaves no trace and does not touch its neighbours. Only the failure of the transaction
// itself, its COMMIT or the disk, is an error for all of its members. Then none of them
// is seen by a reader of this store, now or later. What SQLite leaves open is a crash
// right after a sync that failed: the log may hold the whole group, and the next start
// then finds all of it, never a part. A caller that goes on after ErrUnavailable
// reads again before it writes, as the versions make it.
//
// A ctx that ends while the commit is queued takes it out and writes nothing. Once its
// group is being written the answer is awaited: it is near, and it is certain.
func (s *SQLite) Commit(ctx context.Context, c rollout.Change) error {
	statements, err := encode(c)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("begin a write: %w", err)
	}
	p := &pending{statements: statements, err: errAbandoned}
	if s.group.enter(p) {
		s.writeGroup(ctx, []*pending{p})
		return p.err
	}
	select {
	case <-p.done:
		return p.err
	case members := <-p.lead:
		s.writeGroup(ctx, members)
		return p.err
	case <-ctx.Done():
	}
	if s.group.leave(p) {
		return fmt.Errorf("wait for a write: %w", ctx.Err())
	}
	select { // it was taken into a group just before
	case <-p.done:
	case members := <-p.lead:
		s.writeGroup(ctx, members)
	}
	return p.err
}

// enter reports whether the caller writes at once; otherwise the commit is queued.
func (g *group) enter(p *pending) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.writing {
		g.writing = true
		return true
	}
	p.done, p.lead = make(chan struct{}), make(chan []*pending, 1)
	g.queue = append(g.queue, p)
	return false
}

// leave takes a commit out of the queue; false when it is not there any more.
func (g *group) leave(p *pending) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, p)
	if i < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return true
}

// next has the first in the queue write for those behind it.
func (g *group) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.writing = false
		return
	}
	n := min(len(g.queue), largestGroup)
	members := slices.Clone(g.queue[:n])
	g.queue = slices.Delete(g.queue, 0, n)
	members[0].lead <- members
}

// writeGroup writes the members in one transaction, the caller's first, and answers the
// others. The end of the caller's ctx does not end it: it writes for others.
func (s *SQLite) writeGroup(ctx context.Context, members []*pending) {
	defer s.group.next()
	defer func() {
		for _, p := range members[1:] {
			close(p.done)
		}
	}()
	refused := make([]error, len(members))
	err := s.inTx(context.WithoutCancel(ctx), func(w *writer) {
		if len(members) == 1 {
			w.run(members[0].statements)
			return
		}
		for i, p := range members {
			refused[i] = w.apart(p.statements)
		}
	})
	taken := uint64(0)
	for i, p := range members {
		if p.err = cmp.Or(err, refused[i]); p.err == nil {
			taken++
		}
	}
	s.group.count(taken)
}

func (g *group) count(taken uint64) {
	if taken == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written.Commits += taken
	g.written.Transactions++
}

// apart runs the statements of one member of a group. What refuses them is returned and
// undone; w.err is set only when the transaction itself is lost.
func (w *writer) apart(statements []statement) error {
	w.exec("SAVEPOINT member")
	if w.err != nil {
		return nil //nolint:nilerr // the whole group's error
	}
	w.run(statements)
	refused := w.err
	w.err = nil
	if refused != nil {
		// Where SQLite has ended the transaction itself, as it may for want of space,
		// there is nothing to go back to: this fails, and so does the group.
		if w.exec("ROLLBACK TO member"); w.err != nil {
			w.err = refused
			return nil //nolint:nilerr // as above
		}
	}
	w.exec("RELEASE member")
	return refused
}
