package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// The kinds of records in the journal. The key's Repository is the destination's name, its
// Name the event's ID.
const (
	kindQueued = "notify"
	kindSent   = "notify_sent"
)

const (
	defaultBound = 1000
	keepSent     = 30 * 24 * time.Hour
	sweepEvery   = time.Hour
	sweepMost    = 1000 // records at once
	sendTimeout  = 10 * time.Second
	firstBackOff = 10 * time.Second
	longestWait  = 15 * time.Minute
	longestLater = time.Hour
)

// Journal is what of a journal the outbox reads.
type Journal interface {
	Get(ctx context.Context, k journal.Key) ([]byte, error)
	List(ctx context.Context, pattern journal.Key) iter.Seq2[journal.Record, error]
}

// Options put an outbox together.
type Options struct {
	Destinations []Destination
	Journal      Journal
	Write        func(context.Context, journal.Batch) error // a commit under the lease
	Bound        int                                        // events that wait for one destination; default 1000
}

// Outbox sends what the journal holds. It is safe for concurrent use.
type Outbox struct {
	options Options

	mu     sync.Mutex
	lanes  map[string]*lane
	told   map[string]int // newest reminders that the journal has, by destination and event; emptied by each sweep
	swept  time.Time
	counts map[string]Counts
}

// lane is how one destination fares.
type lane struct {
	busy  bool
	fails int
	next  time.Time // not before
}

// Counts are what became of one destination's events since the process began.
type Counts struct {
	Sent       int
	Failed     int // tries
	Refused    int
	Superseded int // reminders that a newer one overtook
	Dropped    int // for want of room
	Waiting    int // at the last delivery
}

// NewOutbox makes an outbox over a journal.
func NewOutbox(o Options) *Outbox {
	if o.Bound <= 0 {
		o.Bound = defaultBound
	}
	b := &Outbox{options: o, lanes: map[string]*lane{}, told: map[string]int{}, counts: map[string]Counts{}}
	for _, d := range o.Destinations {
		b.lanes[d.Name] = &lane{}
		b.counts[d.Name] = Counts{}
	}
	return b
}

// Counts tells what became of events, by destination.
func (o *Outbox) Counts() map[string]Counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]Counts{}
	for name, c := range o.counts {
		out[name] = c
	}
	return out
}

func (o *Outbox) count(name string, add func(*Counts)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.counts[name]
	add(&c)
	o.counts[name] = c
}

// Enqueue is what is put into the journal to tell an event, in the batch of the change
// that it tells. An event whose key was sent before may be put again: it is not sent.
func (o *Outbox) Enqueue(e Event) []journal.Record {
	var out []journal.Record
	for _, d := range o.options.Destinations {
		if d.Wants(e.Kind) {
			out = append(out, queued(d.Name, e))
		}
	}
	return out
}

func queued(destination string, e Event) journal.Record {
	value, err := json.Marshal(e)
	if err != nil { // nothing in it cannot be encoded but an instant beyond the year 9999
		e.At = time.Time{}
		value, _ = json.Marshal(e)
	}
	return journal.Record{Key: journal.Key{Kind: kindQueued, Repository: destination, Name: e.ID()}, Value: value}
}

// Remind is what is put into the journal to remind of an event that still stands, such as
// a park: nothing, most of the time. Each destination has its own interval, counted from
// the event's instant.
func (o *Outbox) Remind(ctx context.Context, e Event, now time.Time) ([]journal.Record, error) {
	var out []journal.Record
	for _, d := range o.options.Destinations {
		n, due := ReminderDue(e.At, time.Time{}, d.Remind, now)
		if !due || !d.Wants(e.Kind) || o.toldOf(d.Name, e) >= n {
			continue
		}
		r := e
		r.Reminder = n
		known, err := o.known(ctx, d.Name, r)
		if err != nil {
			return nil, err
		}
		if !known { // and not until it is in the journal
			out = append(out, queued(d.Name, r))
			continue
		}
		o.mu.Lock()
		o.told[digest([]string{d.Name, e.about()})] = n
		o.mu.Unlock()
	}
	return out, nil
}

func (o *Outbox) toldOf(destination string, e Event) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told[digest([]string{destination, e.about()})]
}

// known reports whether an event is queued or sent.
func (o *Outbox) known(ctx context.Context, destination string, e Event) (bool, error) {
	for _, kind := range []string{kindQueued, kindSent} {
		_, err := o.options.Journal.Get(ctx, journal.Key{Kind: kind, Repository: destination, Name: e.ID()})
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, journal.ErrNone) {
			return false, err
		}
	}
	return false, nil
}

// Deliver sends what is due, the oldest first, to all destinations at once. One that fails
// is left alone for a while, longer each time; what waits for it keeps its order, and the
// others do not notice. It returns when each has been served or has failed, which takes one
// timeout at most for each that does not answer, and then tells the failures.
func (o *Outbox) Deliver(ctx context.Context, now time.Time) error {
	var wg sync.WaitGroup
	errs := make([]error, len(o.options.Destinations)+1)
	for i, d := range o.options.Destinations {
		if !o.enter(d.Name, now) {
			continue
		}
		wg.Go(func() {
			defer o.leave(d.Name)
			if err := o.serve(ctx, d, now); err != nil {
				errs[i] = fmt.Errorf("notify %q: %w", d.Name, err)
			}
		})
	}
	errs[len(errs)-1] = o.sweep(ctx, now)
	wg.Wait()
	return errors.Join(errs...)
}

// enter takes a destination's lane, when nobody serves it and it is not left alone.
func (o *Outbox) enter(name string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[name]
	if l.busy || now.Before(l.next) {
		return false
	}
	l.busy = true
	return true
}

func (o *Outbox) leave(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lanes[name].busy = false
}

// serve sends what waits for one destination, until something fails.
func (o *Outbox) serve(ctx context.Context, d Destination, now time.Time) error {
	waiting, err := o.waiting(ctx, d.Name)
	if err != nil {
		return err
	}
	if waiting, err = o.thin(ctx, d.Name, waiting); err != nil {
		return err
	}
	o.count(d.Name, func(c *Counts) { c.Waiting = len(waiting) })
	for _, e := range waiting {
		if err := o.send(ctx, d, e, now); err != nil {
			return err
		}
		o.count(d.Name, func(c *Counts) { c.Waiting-- })
	}
	return nil
}

func (o *Outbox) waiting(ctx context.Context, name string) ([]Event, error) {
	var out []Event
	for r, err := range o.options.Journal.List(ctx, journal.Key{Kind: kindQueued, Repository: name}) {
		if err != nil {
			return nil, err
		}
		var e Event
		if err := json.Unmarshal(r.Value, &e); err != nil {
			return nil, fmt.Errorf("read a notification from the journal: %w", err)
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Reminder, b.Reminder), strings.Compare(a.ID(), b.ID()))
	})
	return out, nil
}

// thin takes away reminders that a newer one overtook, and what is too much: the oldest
// reminders first, then the oldest of the rest.
func (o *Outbox) thin(ctx context.Context, name string, waiting []Event) ([]Event, error) {
	newest := map[string]int{}
	for _, e := range waiting {
		newest[e.about()] = max(newest[e.about()], e.Reminder)
	}
	var keep, gone []Event
	for _, e := range waiting {
		if e.Reminder > 0 && e.Reminder < newest[e.about()] {
			gone = append(gone, e)
		} else {
			keep = append(keep, e)
		}
	}
	superseded := len(gone)
	excess := len(keep) - o.options.Bound
	for _, reminders := range []bool{true, false} {
		keep = slices.DeleteFunc(keep, func(e Event) bool {
			drop := excess > 0 && (e.Reminder > 0) == reminders
			if drop {
				gone = append(gone, e)
				excess--
			}
			return drop
		})
	}
	if len(gone) == 0 {
		return keep, nil
	}
	b := journal.Batch{}
	for _, e := range gone {
		b.Delete = append(b.Delete, queued(name, e).Key)
	}
	if err := o.options.Write(ctx, b); err != nil {
		return nil, err
	}
	o.count(name, func(c *Counts) { c.Superseded += superseded; c.Dropped += len(gone) - superseded })
	return keep, nil
}

// attempt sends an event. A panic on the way is a try that failed: it takes neither the
// other destinations nor the process with it.
func attempt(ctx context.Context, to Notifier, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a fault of sluice, please report it: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return to.Notify(ctx, e)
}

// send sends one event that was not sent before, and records that it was.
func (o *Outbox) send(ctx context.Context, d Destination, e Event, now time.Time) error {
	done := journal.Batch{Delete: []journal.Key{queued(d.Name, e).Key}}
	sent := journal.Key{Kind: kindSent, Repository: d.Name, Name: e.ID()}
	_, err := o.options.Journal.Get(ctx, sent)
	if err == nil {
		return o.options.Write(ctx, done)
	}
	if !errors.Is(err, journal.ErrNone) {
		return err
	}
	var refused *Refused
	limited, cancel := context.WithTimeout(ctx, sendTimeout)
	err = attempt(limited, d.Notifier, e)
	cancel()
	if err != nil && !errors.As(err, &refused) {
		o.failed(d.Name, err, now)
		return err
	}
	o.succeeded(d.Name, refused)
	at, encodeErr := json.Marshal(now.UTC())
	if encodeErr != nil {
		return encodeErr
	}
	done.Put = []journal.Record{{Key: sent, Value: at}}
	return errors.Join(err, o.options.Write(ctx, done))
}

func (o *Outbox) succeeded(name string, refused *Refused) {
	o.mu.Lock()
	o.lanes[name].fails, o.lanes[name].next = 0, time.Time{}
	o.mu.Unlock()
	o.count(name, func(c *Counts) {
		if refused != nil {
			c.Refused++
		} else {
			c.Sent++
		}
	})
}

// failed leaves a destination alone for a while.
func (o *Outbox) failed(name string, err error, now time.Time) {
	o.count(name, func(c *Counts) { c.Failed++ })
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lanes[name]
	wait := min(firstBackOff<<min(l.fails, 10), longestWait)
	var later *Later
	if errors.As(err, &later) {
		wait = min(max(wait, later.After), longestLater)
	}
	l.fails++
	l.next = now.Add(wait)
}

// sweep forgets, now and then and a bounded piece at a time, what was sent long ago, and
// what waits for a destination that the configuration does not have any more.
func (o *Outbox) sweep(ctx context.Context, now time.Time) error {
	o.mu.Lock()
	early := now.Sub(o.swept) < sweepEvery
	if !early {
		o.swept, o.told = now, map[string]int{}
	}
	o.mu.Unlock()
	if early {
		return nil
	}
	var b journal.Batch
	for r, err := range o.options.Journal.List(ctx, journal.Key{Kind: kindSent}) {
		if err != nil {
			return err
		}
		var at time.Time
		if err := json.Unmarshal(r.Value, &at); err != nil || now.Sub(at) > keepSent {
			b.Delete = append(b.Delete, r.Key)
		}
	}
	for r, err := range o.options.Journal.List(ctx, journal.Key{Kind: kindQueued}) {
		if err != nil {
			return err
		}
		if _, there := o.lanes[r.Key.Repository]; !there {
			b.Delete = append(b.Delete, r.Key)
		}
	}
	if len(b.Delete) == 0 {
		return nil
	}
	b.Delete = b.Delete[:min(len(b.Delete), sweepMost)]
	return o.options.Write(ctx, b)
}
