package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

// crowd is a stage whose reconcilers run as in production: a goroutine for each
// repository, all in the bubble's time. The engine takes one call at a time.
type crowd struct {
	*stage
	began time.Time
	turn  sync.Mutex
}

func newCrowd(t *testing.T, repositories int) *crowd {
	t.Helper()
	w := &crowd{stage: newStage(t), began: time.Now()}
	for i := range repositories {
		name := fmt.Sprintf("r%d", i)
		w.follow(name, map[string]string{"prod/main.tf": canaryHouse("chat-"+name, 10, 100)})
	}
	return w
}

// clock is the bubble's time on the stage's calendar.
func (w *crowd) clock() time.Time { return epoch.Add(time.Since(w.began)) }

// RoundTrip brings the engine to the present and lets the call through.
func (w *crowd) RoundTrip(req *http.Request) (*http.Response, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.advance(max(0, w.clock().Sub(w.now)))
	return w.stage.RoundTrip(req)
}

// run starts a reconciler; stop asks it to end, and tells how it ended and how long that took.
func (w *crowd) run(j journal.Journal, hole map[string]bool) (r *Reconciler, stop func() (time.Duration, error), ended <-chan error) {
	w.t.Helper()
	remotes := map[string]gitsource.Remote{}
	for name, m := range w.remotes {
		remotes[name] = m
		if hole[name] {
			remotes[name] = &blackHole{memoryRemote: m}
		}
	}
	r, err := New(w.config, Parts{Engine: w.clientOver(w, w.key), Journal: j, Remotes: remotes, Now: w.clock})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() (time.Duration, error) {
		began := time.Now()
		cancel()
		err := <-done
		return time.Since(began), err
	}, done
}

// blackHole is a remote that takes calls and never answers.
type blackHole struct {
	*memoryRemote
	asked atomic.Int64
}

// Refs waits for its end.
func (b *blackHole) Refs(ctx context.Context) (gitsource.Refs, error) {
	b.asked.Add(1)
	<-ctx.Done()
	return gitsource.Refs{}, ctx.Err()
}

// F9: a repository whose host takes calls and never answers delays no other, its own tries
// are at their deadline and ever more seldom, and a stop does not wait for it.
func TestABlackHoledRepositoryDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd(t, 4)
		r, stop, _ := w.run(w.journal, map[string]bool{"r0": true})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for _, f := range r.followers {
			seen := f.health()
			if f.config.Name == "r0" {
				require.Positive(t, seen.Failures)
				require.Less(t, seen.Passes, 30, "its tries become seldom")
				continue
			}
			require.Zero(t, seen.Failures, seen.Error)
			require.GreaterOrEqual(t, seen.Passes, 110)
			require.Less(t, w.clock().Sub(seen.Ended), f.config.Interval+time.Second)
			s, err := read[stackRecord](t.Context(), w.journal, stackKey(f.key("prod")))
			require.NoError(t, err)
			require.Equal(t, InStep, s.Phase)
		}
		took, err := stop()
		require.NoError(t, err)
		require.LessOrEqual(t, took, 6*time.Second)
	})
}

// A fault of our own that one repository meets stops neither the others nor the process: its
// passes fail, are told, and go on as after a crash.
func TestAPanicInOneRepositoryStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd(t, 3)
		w.remotes["r0"].panics = 5
		r, stop, _ := w.run(w.journal, nil)
		failed := false
		for range 100 {
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, f := range r.followers {
				seen := f.health()
				if f.config.Name == "r0" && seen.Failures > 0 {
					failed = true
					require.Contains(t, seen.Error, "a fault of sluice")
				}
			}
		}
		require.True(t, failed)
		for _, f := range r.followers {
			require.Zero(t, f.health().Failures, f.health().Error)
			s, err := read[stackRecord](t.Context(), w.journal, stackKey(f.key("prod")))
			require.NoError(t, err)
			require.Equal(t, InStep, s.Phase)
		}
		_, err := stop()
		require.NoError(t, err)
	})
}

// E1, E7: the second of two that run at once stands by and writes nothing; it takes over
// at once when the first is stopped, and when the first cannot renew its lease any more
// that one stops by itself before the lease is anybody else's.
func TestTwoReconcilersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd(t, 3)
		first, stopFirst, _ := w.run(w.journal, nil)
		time.Sleep(time.Second)
		second, stopSecond, _ := w.run(w.journal, nil)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		require.Positive(t, first.followers[0].health().Passes)
		require.Zero(t, second.followers[0].health().Passes)
		_, err := stopFirst()
		require.NoError(t, err)
		time.Sleep(leaseFor + time.Minute)
		synctest.Wait()
		require.Positive(t, second.followers[0].health().Passes)
		_, err = stopSecond()
		require.NoError(t, err)

		sick := &sickJournal{Memory: w.journal}
		_, stopThird, ended := w.run(sick, nil)
		time.Sleep(time.Minute)
		sick.down.Store(true)
		fell := time.Now()
		err = <-ended
		require.ErrorIs(t, err, ErrNotHolder)
		require.LessOrEqual(t, time.Since(fell), leaseFor, "before the lease is free")
		_ = stopThird
		fourth, stopFourth, _ := w.run(w.journal, nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Positive(t, fourth.followers[0].health().Passes)
		_, err = stopFourth()
		require.NoError(t, err)
		for name := range w.remotes {
			require.Len(t, w.allUnderTurn("chat-"+name), 1)
		}
	})
}

func (w *crowd) allUnderTurn(endpoint string) []string {
	w.turn.Lock()
	defer w.turn.Unlock()
	var out []string
	for _, r := range w.all(endpoint) {
		out = append(out, r.ID)
	}
	return out
}

// sickJournal is one whose database goes away for writes.
type sickJournal struct {
	*journaltest.Memory
	down atomic.Bool
}

var errAway = errors.New("the database is away")

// Renew fails while it is down.
func (s *sickJournal) Renew(ctx context.Context, l journal.Lease, now time.Time, ttl time.Duration) (journal.Lease, error) {
	if s.down.Load() {
		return journal.Lease{}, errAway
	}
	return s.Memory.Renew(ctx, l, now, ttl)
}

// Commit fails while it is down.
func (s *sickJournal) Commit(ctx context.Context, f journal.Fence, b journal.Batch) error {
	if s.down.Load() {
		return errAway
	}
	return s.Memory.Commit(ctx, f, b)
}
