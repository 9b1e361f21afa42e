// Package journaltest has a journal in memory, whose every commit a test can watch or
// fail, and the conformance suite that all journals pass.
package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// Memory is a journal in memory. It outlives the reconciler that writes it: whoever is
// started next with the same one finds what was committed.
type Memory struct {
	mu      sync.Mutex
	hook    func(Boundary) error
	commits int
	lease   journal.Lease
	records map[journal.Key][]byte
	intents map[string]*intent
	entries []journal.Entry // by sequence
	seq     int64
}

type intent struct {
	journal.Intent
	outcome *journal.Outcome
}

// Boundary is the instant before or after one commit.
type Boundary struct {
	Commit int // the how manieth it is, from 1; tries that are refused count too
	Side   Side
	Batch  journal.Batch
}

// Side is which side of a commit.
type Side string

// The sides. An error before a commit keeps it from being written; one after it leaves
// what was written, as a process that dies there does.
const (
	Before Side = "before"
	After  Side = "after"
)

// New makes an empty journal.
func New() *Memory {
	return &Memory{records: map[journal.Key][]byte{}, intents: map[string]*intent{}}
}

// Hook has a function called before and after each commit; its error is the commit's.
// Nil takes it away. It may use the journal, and it may panic.
func (m *Memory) Hook(f func(Boundary) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = f
}

// Commits is how many commits were tried.
func (m *Memory) Commits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// Size is how much is kept: records, open and closed intents, entries.
func (m *Memory) Size() (records, intents, entries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records), len(m.intents), len(m.entries)
}

// Acquire takes the lease.
func (m *Memory) Acquire(_ context.Context, who journal.Holder, now time.Time, ttl time.Duration) (journal.Lease, error) {
	who, err := who.Admit()
	if err != nil {
		return journal.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Holder.ID != who.ID && !m.lease.Free(now) {
		return journal.Lease{}, &journal.Held{By: m.lease}
	}
	m.lease = journal.Lease{Holder: who, Fence: m.lease.Fence + 1, Renewed: now, Expires: now.Add(ttl)}
	return m.lease, nil
}

// Renew makes the lease last longer.
func (m *Memory) Renew(_ context.Context, l journal.Lease, now time.Time, ttl time.Duration) (journal.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fenced(l.Fence); err != nil {
		return journal.Lease{}, err
	}
	l.Renewed, l.Expires = now, now.Add(ttl)
	m.lease = l
	return l, nil
}

// Release gives the lease back.
func (m *Memory) Release(_ context.Context, l journal.Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Fence == l.Fence {
		m.lease = journal.Lease{Fence: l.Fence + 1}
	}
	return nil
}

// ForceRelease takes the lease from a holder that does not answer.
func (m *Memory) ForceRelease(_ context.Context, now time.Time, stale time.Duration) (journal.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.lease
	switch {
	case was.Holder.ID == "":
		return journal.Lease{}, journal.ErrNone
	case was.Fresh(now, stale):
		return journal.Lease{}, &journal.Held{By: was}
	}
	m.lease = journal.Lease{Fence: was.Fence + 1}
	return was, nil
}

// Holder tells whose the lease is.
func (m *Memory) Holder(context.Context) (journal.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lease.Holder.ID == "" {
		return journal.Lease{}, journal.ErrNone
	}
	return m.lease, nil
}

func (m *Memory) fenced(f journal.Fence) error {
	if m.lease.Fence != f {
		return &journal.Fenced{Mine: f, Newest: m.lease.Fence}
	}
	return nil
}

// Commit does all of a batch or nothing.
func (m *Memory) Commit(ctx context.Context, f journal.Fence, b journal.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	m.commits++
	at, hook := Boundary{Commit: m.commits, Side: Before, Batch: b}, m.hook
	m.mu.Unlock()
	if hook != nil {
		if err := hook(at); err != nil {
			return err
		}
	}
	if err := m.commit(f, b); err != nil {
		return err
	}
	if hook != nil {
		at.Side = After
		return hook(at)
	}
	return nil
}

func (m *Memory) commit(f journal.Fence, b journal.Batch) error {
	b, err := b.Admit()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fenced(f); err != nil {
		return err
	}
	begun := map[string]bool{}
	for _, i := range b.Begin {
		begun[i.ID] = true
	}
	for _, o := range b.End {
		if m.intents[o.Intent] == nil && !begun[o.Intent] {
			return &journal.Bad{Why: "an outcome for the intent " + o.Intent + ", which was never begun"}
		}
	}
	for _, k := range b.Delete {
		delete(m.records, k)
	}
	for _, r := range b.Put {
		m.records[r.Key] = r.Value
	}
	for _, i := range b.Begin {
		m.intents[i.ID] = &intent{Intent: i}
	}
	for _, o := range b.End {
		m.intents[o.Intent].outcome = &o
	}
	for _, e := range b.Entries {
		m.seq++
		e.Seq = m.seq
		m.entries = append(m.entries, e)
	}
	return nil
}

// Get reads a record.
func (m *Memory) Get(_ context.Context, k journal.Key) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.records[k]
	if !ok {
		return nil, journal.ErrNone
	}
	return bytes.Clone(value), nil
}

// List reads records in the order of their keys.
func (m *Memory) List(_ context.Context, pattern journal.Key) iter.Seq2[journal.Record, error] {
	like := func(want, have string) bool { return want == "" || want == have }
	return func(yield func(journal.Record, error) bool) {
		m.mu.Lock()
		var out []journal.Record
		for k, v := range m.records {
			if like(pattern.Kind, k.Kind) && like(pattern.Repository, k.Repository) && like(pattern.Stack, k.Stack) && like(pattern.Name, k.Name) {
				out = append(out, journal.Record{Key: k, Value: bytes.Clone(v)})
			}
		}
		m.mu.Unlock()
		slices.SortFunc(out, func(a, b journal.Record) int {
			return cmp.Or(strings.Compare(a.Key.Kind, b.Key.Kind), strings.Compare(a.Key.Repository, b.Key.Repository), strings.Compare(a.Key.Stack, b.Key.Stack), strings.Compare(a.Key.Name, b.Key.Name))
		})
		for _, r := range out {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Open lists the intents without an outcome, oldest first.
func (m *Memory) Open(context.Context) ([]journal.Intent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []journal.Intent
	for _, i := range m.intents {
		if i.outcome == nil {
			out = append(out, i.Intent)
		}
	}
	slices.SortFunc(out, func(a, b journal.Intent) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
	return out, nil
}

// History lists entries, newest first.
func (m *Memory) History(_ context.Context, q journal.Query) iter.Seq2[journal.Entry, error] {
	like := func(want, have string) bool { return want == "" || want == have }
	return func(yield func(journal.Entry, error) bool) {
		m.mu.Lock()
		entries := slices.Clone(m.entries)
		m.mu.Unlock()
		given := 0
		for _, e := range slices.Backward(entries) {
			if q.Before > 0 && e.Seq >= q.Before || !like(q.Repository, e.Repository) || !like(q.Stack, e.Stack) || !like(q.Endpoint, e.Endpoint) || !like(q.Kind, e.Kind) {
				continue
			}
			if given++; !yield(e, nil) || given == q.Most {
				return
			}
		}
	}
}

// Prune deletes what is old, at most so much.
func (m *Memory) Prune(_ context.Context, f journal.Fence, before time.Time, most int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fenced(f); err != nil {
		return 0, err
	}
	gone := map[int64]bool{}
	for _, e := range slices.SortedStableFunc(slices.Values(m.entries), func(a, b journal.Entry) int { return a.At.Compare(b.At) }) {
		if len(gone) < most && e.At.Before(before) {
			gone[e.Seq] = true
		}
	}
	m.entries = slices.DeleteFunc(m.entries, func(e journal.Entry) bool { return gone[e.Seq] })
	n := len(gone)
	var ended []*intent
	for _, i := range m.intents {
		if i.outcome != nil && i.outcome.At.Before(before) {
			ended = append(ended, i)
		}
	}
	slices.SortFunc(ended, func(a, b *intent) int {
		return cmp.Or(a.outcome.At.Compare(b.outcome.At), strings.Compare(a.ID, b.ID))
	})
	for _, i := range ended[:max(0, min(len(ended), most-n))] {
		delete(m.intents, i.ID)
		n++
	}
	return n, nil
}

// Close keeps everything for whoever opens it next.
func (m *Memory) Close() error { return nil }
