package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// receiver is a place that remembers what it heard, and fails when it is told to.
type receiver struct {
	mu    sync.Mutex
	heard []notify.Event
	fail  func(n int) error // of the n-th try, from 1
	tries int
	wait  bool // until the context ends
}

func (r *receiver) Notify(ctx context.Context, e notify.Event) error {
	r.mu.Lock()
	r.tries++
	fail, n, wait := r.fail, r.tries, r.wait
	r.mu.Unlock()
	if wait {
		<-ctx.Done()
		return ctx.Err()
	}
	if fail != nil {
		if err := fail(n); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, e)
	return nil
}

func (r *receiver) titles() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.heard {
		out = append(out, strings.TrimSpace(fmt.Sprint(e.Title, " ", strings.Repeat("!", min(e.Reminder, 3)))))
	}
	return out
}

// world is an outbox over a journal that outlives it.
type world struct {
	t            *testing.T
	journal      *journaltest.Memory
	lease        journal.Lease
	destinations []notify.Destination
	bound        int
	*notify.Outbox
}

func newWorld(t *testing.T, destinations ...notify.Destination) *world {
	w := &world{t: t, journal: journaltest.New(), destinations: destinations}
	w.restart()
	return w
}

// restart is another process over the same journal.
func (w *world) restart() {
	l, err := w.journal.Acquire(w.t.Context(), journal.Holder{ID: "a"}, start, time.Minute)
	require.NoError(w.t, err)
	w.lease = l
	w.Outbox = notify.NewOutbox(notify.Options{Destinations: w.destinations, Journal: w.journal, Bound: w.bound, Write: w.write})
}

func (w *world) write(ctx context.Context, b journal.Batch) error {
	return w.journal.Commit(ctx, w.lease.Fence, b)
}

func (w *world) put(records []journal.Record) {
	if len(records) > 0 {
		require.NoError(w.t, w.write(context.Background(), journal.Batch{Put: records}))
	}
}

func event(title string, at time.Duration) notify.Event {
	return notify.Event{Key: []string{"rollout.parked", "rol_1", title}, Kind: "rollout.parked", At: start.Add(at), Title: title, Severity: notify.Urgent}
}

// C5: for nine days a park stands; there is one report, and a reminder each four hours.
func TestC5NineDaysParkedAreOneReportAndTheReminders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		four, none, day := &receiver{}, &receiver{}, &receiver{}
		w := newWorld(t,
			notify.Destination{Name: "four", Notifier: four, Remind: 4 * time.Hour},
			notify.Destination{Name: "none", Notifier: none},
			notify.Destination{Name: "day", Notifier: day, Remind: 24 * time.Hour},
		)
		park := event("parked", 0)
		park.At = time.Now()
		w.put(w.Enqueue(park))
		before := 0
		for pass := range 9 * 24 * 60 {
			records, err := w.Remind(t.Context(), park, time.Now())
			require.NoError(t, err)
			w.put(records)
			require.NoError(t, w.Deliver(t.Context(), time.Now()))
			if pass%5000 == 4999 {
				w.restart()
			}
			time.Sleep(time.Minute)
			before = pass
		}
		require.Equal(t, 9*24*60-1, before)
		for _, c := range []struct {
			r         *receiver
			reminders int
		}{{four, 53}, {none, 0}, {day, 8}} {
			require.Len(t, c.r.heard, 1+c.reminders)
			for i, e := range c.r.heard {
				require.Equal(t, i, e.Reminder, "each once, in order")
			}
		}
		require.Less(t, w.journal.Commits(), 400, "a pass in which nothing is due writes nothing")
	})
}

func TestRemindersAreDueOncePerInterval(t *testing.T) {
	for _, c := range []struct {
		now, last, every time.Duration
		n                int
		due              bool
	}{
		{time.Hour, -1, 4 * time.Hour, 0, false},
		{4*time.Hour - 1, -1, 4 * time.Hour, 0, false},
		{4 * time.Hour, -1, 4 * time.Hour, 1, true},
		{5 * time.Hour, 4 * time.Hour, 4 * time.Hour, 1, false},
		{8 * time.Hour, 4 * time.Hour, 4 * time.Hour, 2, true},
		{100 * time.Hour, 4 * time.Hour, 4 * time.Hour, 25, true}, // missed ones are not made up for
		{-time.Hour, -1, 4 * time.Hour, 0, false},                 // a clock that stepped back
		{time.Hour, -1, 0, 0, false},
	} {
		n, due := notify.ReminderDue(start, start.Add(c.last), c.every, start.Add(c.now))
		require.Equal(t, c.n, n, "%+v", c)
		require.Equal(t, c.due, due, "%+v", c)
	}
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(t, "every"))
		step := time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "step"))
		sent, last, now := 0, time.Time{}, start
		for range 200 {
			now = now.Add(step)
			if n, due := notify.ReminderDue(start, last, every, now); due {
				if n < sent {
					t.Fatal("numbers rise")
				}
				sent, last = n, now
			}
			if _, due := notify.ReminderDue(start, last, every, now); due {
				t.Fatal("it is due twice at one instant")
			}
		}
		if now.Sub(start) >= every && sent != int(now.Sub(start)/every) {
			t.Fatal("the newest is missing")
		}
	})
}

// K3: what tells events apart is their key, whatever their text says.
func TestK3AnEventIsKnownByItsKeyAndNotByItsText(t *testing.T) {
	r := &receiver{}
	w := newWorld(t, notify.Destination{Name: "r", Notifier: r})
	for i := range 5 {
		e := event("parked", 0)
		e.Text = fmt.Sprint("for ", time.Duration(i*1234567), " now")
		w.put(w.Enqueue(e))
		require.NoError(t, w.Deliver(t.Context(), start.Add(time.Duration(i)*time.Minute)))
	}
	require.Len(t, r.heard, 1)
	w.restart()
	w.put(w.Enqueue(event("parked", 0)))
	require.NoError(t, w.Deliver(t.Context(), start.Add(time.Hour)))
	require.Len(t, r.heard, 1, "nor after a restart")
	ids := map[string]bool{}
	for _, key := range [][]string{{"a", "b"}, {"a b"}, {"ab"}, {"a", "", "b"}, {"a", "b", ""}, {`a","b`}, {}} {
		ids[notify.Event{Key: key}.ID()] = true
	}
	ids[notify.Event{Key: []string{"a", "b"}, Reminder: 1}.ID()] = true
	require.Len(t, ids, 8)
}

func TestADeadDestinationDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, well := &receiver{wait: true}, &receiver{}
		w := newWorld(t, notify.Destination{Name: "dead", Notifier: dead}, notify.Destination{Name: "well", Notifier: well})
		begin := time.Now()
		for i := range 200 {
			w.put(w.Enqueue(event(fmt.Sprint(i), time.Duration(i)*time.Second)))
			done := make(chan error, 1)
			go func() { done <- w.Deliver(t.Context(), time.Now()) }()
			synctest.Wait()
			require.Len(t, well.titles(), i+1, "at once, while the other is tried")
			if err := <-done; err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			time.Sleep(5 * time.Second)
		}
		elapsed := time.Since(begin)
		require.Less(t, dead.tries, 12, "in %s", elapsed)
		require.Greater(t, dead.tries, 5)
		require.Less(t, elapsed, 200*5*time.Second+time.Duration(dead.tries+1)*10*time.Second)
		require.Equal(t, 200, w.Counts()["well"].Sent)
		require.Equal(t, dead.tries, w.Counts()["dead"].Failed)
		dead.mu.Lock()
		dead.wait = false
		dead.mu.Unlock()
		time.Sleep(15 * time.Minute)
		require.NoError(t, w.Deliver(t.Context(), time.Now()))
		want := []string{}
		for i := range 200 {
			want = append(want, fmt.Sprint(i))
		}
		require.Equal(t, want, dead.titles(), "nothing was lost, and the order is kept")
	})
}

func TestAWaitThatTheReceiverAsksForIsKept(t *testing.T) {
	r := &receiver{fail: func(n int) error {
		if n == 1 {
			return &notify.Later{After: 5 * time.Minute}
		}
		return nil
	}}
	w := newWorld(t, notify.Destination{Name: "r", Notifier: r})
	w.put(w.Enqueue(event("a", 0)))
	require.Error(t, w.Deliver(t.Context(), start))
	require.NoError(t, w.Deliver(t.Context(), start.Add(5*time.Minute-1)))
	require.Equal(t, 1, r.tries)
	require.NoError(t, w.Deliver(t.Context(), start.Add(5*time.Minute)))
	require.Equal(t, []string{"a"}, r.titles())
}

func TestAnEventThatIsRefusedDoesNotHoldUpThoseBehindIt(t *testing.T) {
	r := &receiver{fail: func(n int) error {
		if n == 1 {
			return &notify.Refused{Why: "too long"}
		}
		return nil
	}}
	w := newWorld(t, notify.Destination{Name: "r", Notifier: r})
	w.put(w.Enqueue(event("a", 0)))
	w.put(w.Enqueue(event("b", time.Second)))
	require.ErrorContains(t, w.Deliver(t.Context(), start), "too long")
	require.NoError(t, w.Deliver(t.Context(), start))
	require.Equal(t, []string{"b"}, r.titles())
	require.Equal(t, 2, r.tries, "it is not tried again")
	require.Equal(t, notify.Counts{Sent: 1, Refused: 1}, w.Counts()["r"])
}

func TestTheQueueIsBoundedAndRemindersGoFirst(t *testing.T) {
	r := &receiver{fail: func(int) error { return errors.New("down") }}
	w := newWorld(t, notify.Destination{Name: "r", Notifier: r, Remind: time.Hour})
	w.bound = 10
	w.restart()
	var parks []notify.Event
	for i := range 4 {
		park := event(fmt.Sprint("park ", i), time.Duration(i))
		parks = append(parks, park)
		w.put(w.Enqueue(park))
	}
	deliver := func(at time.Duration) { _ = w.Deliver(t.Context(), start.Add(at)) }
	deliver(0)
	for h := 1; h <= 3; h++ { // each hour's reminder overtakes the one before
		for _, p := range parks {
			records, err := w.Remind(t.Context(), p, start.Add(time.Duration(h)*time.Hour+time.Minute))
			require.NoError(t, err)
			require.Len(t, records, 1)
			w.put(records)
			records, err = w.Remind(t.Context(), p, start.Add(time.Duration(h)*time.Hour+time.Minute))
			require.NoError(t, err)
			require.Empty(t, records, "it is in the journal")
		}
		deliver(time.Duration(h)*time.Hour + time.Minute)
	}
	require.Equal(t, notify.Counts{Failed: 4, Superseded: 8, Waiting: 8}, w.Counts()["r"])
	for i := range 9 {
		w.put(w.Enqueue(event(fmt.Sprint("more ", i), time.Hour+time.Duration(i))))
	}
	deliver(24 * time.Hour)
	require.Equal(t, notify.Counts{Failed: 5, Superseded: 8, Dropped: 7, Waiting: 10}, w.Counts()["r"], "four reminders, and the three oldest")
	r.mu.Lock()
	r.fail = nil
	r.mu.Unlock()
	deliver(48 * time.Hour)
	require.Equal(t, "park 3", r.titles()[0])
	require.Len(t, r.titles(), 10)
	_, _, entries := w.journal.Size()
	require.Zero(t, entries)
}

// A process dies at each boundary of each commit: nothing is lost, and only what was sent
// right before the record of it may come twice, under the same id.
func TestACrashAtAnyBoundaryLosesNothing(t *testing.T) {
	died := errors.New("died")
	for crash := 1; ; crash++ {
		r := &receiver{}
		w := newWorld(t, notify.Destination{Name: "r", Notifier: r}, notify.Destination{Name: "s", Notifier: &receiver{}})
		var boundary atomic.Int64
		w.journal.Hook(func(journaltest.Boundary) error {
			if boundary.Add(1) == int64(crash) {
				return died
			}
			return nil
		})
		happened := []notify.Event{}
		for i := range 3 {
			e := event(fmt.Sprint(i), time.Duration(i))
			if err := w.write(t.Context(), journal.Batch{Put: w.Enqueue(e)}); err == nil || boundary.Load() == int64(crash) && crash%2 == 0 {
				happened = append(happened, e)
			}
		}
		_ = w.Deliver(t.Context(), start)
		reached := boundary.Load() >= int64(crash)
		w.journal.Hook(nil)
		w.restart()
		require.NoError(t, w.Deliver(t.Context(), start))
		ids := map[string]bool{}
		for _, e := range r.heard {
			ids[e.ID()] = true
		}
		for _, e := range happened {
			require.True(t, ids[e.ID()], "crash %d", crash)
		}
		require.LessOrEqual(t, len(r.heard), len(happened)+1, "crash %d", crash)
		if !reached {
			require.Greater(t, crash, 12)
			return
		}
	}
}

func TestWhatIsOldAndWhatHasNoDestinationIsForgotten(t *testing.T) {
	r := &receiver{}
	w := newWorld(t, notify.Destination{Name: "r", Notifier: r}, notify.Destination{Name: "gone", Notifier: &receiver{fail: func(int) error { return errors.New("down") }}})
	for i := range 20 {
		w.put(w.Enqueue(event(fmt.Sprint(i), time.Duration(i))))
	}
	_ = w.Deliver(t.Context(), start)
	records, _, _ := w.journal.Size()
	require.Equal(t, 40, records)
	w.destinations = w.destinations[:1]
	w.restart()
	require.NoError(t, w.Deliver(t.Context(), start.Add(29*24*time.Hour)))
	records, _, _ = w.journal.Size()
	require.Equal(t, 20, records, "what was sent is remembered")
	require.NoError(t, w.Deliver(t.Context(), start.Add(31*24*time.Hour)))
	records, _, _ = w.journal.Size()
	require.Zero(t, records)
	require.Len(t, r.heard, 20)
}

func TestADestinationHearsOfWhatItAskedFor(t *testing.T) {
	all, family, one := &receiver{}, &receiver{}, &receiver{}
	w := newWorld(t,
		notify.Destination{Name: "all", Notifier: all},
		notify.Destination{Name: "family", Notifier: family, Events: []string{"source.*"}},
		notify.Destination{Name: "one", Notifier: one, Events: []string{"rollout.parked", "drift.found"}},
	)
	for i, kind := range []string{"rollout.parked", "source.deleted", "drift.found", "sources.x", "rollout.parked.x"} {
		w.put(w.Enqueue(notify.Event{Key: []string{kind}, Kind: kind, Title: kind, At: start.Add(time.Duration(i))}))
	}
	require.NoError(t, w.Deliver(t.Context(), start))
	require.Len(t, all.titles(), 5)
	require.Equal(t, []string{"source.deleted"}, family.titles())
	require.Equal(t, []string{"rollout.parked", "drift.found"}, one.titles())
	require.True(t, slices.IsSortedFunc(all.heard, func(a, b notify.Event) int { return a.At.Compare(b.At) }))
}

// A panic on the way to one place is a try that failed: the others hear, and it is tried again.
func TestAPanicOnTheWayToOnePlaceIsAFailedTry(t *testing.T) {
	broken := &receiver{fail: func(n int) error {
		if n == 1 {
			panic("nil pointer")
		}
		return nil
	}}
	well := &receiver{}
	w := newWorld(t, notify.Destination{Name: "broken", Notifier: broken}, notify.Destination{Name: "well", Notifier: well})
	w.put(w.Enqueue(event("a", 0)))
	require.ErrorContains(t, w.Deliver(t.Context(), start), "a fault of sluice, please report it: panic: nil pointer")
	require.Equal(t, []string{"a"}, well.titles())
	require.NoError(t, w.Deliver(t.Context(), start.Add(time.Hour)))
	require.Equal(t, []string{"a"}, broken.titles())
}
