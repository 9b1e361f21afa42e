package reconciler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// The longest wait between two tries of a repository that fails.
const longestBackOff = 10 * time.Minute

// Run follows all repositories until ctx ends. While another process holds the lease it
// stands by. It returns nil when it was asked to stop, and an error when it has lost the
// lease to somebody else.
func (r *Reconciler) Run(ctx context.Context) error {
	if err := r.standBy(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	r.log.Info("this process writes", "process", r.ledger.who.PID, "host", r.ledger.who.Host, "instance", r.instance)
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var work sync.WaitGroup
	work.Go(func() { r.keepLease(run, stop) })
	work.Go(func() { r.deliver(run) })
	for _, f := range r.followers {
		work.Go(func() { f.loop(run) })
	}
	<-run.Done()
	work.Wait()
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := r.End(ended)
	if cause := context.Cause(run); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// standBy begins as soon as the lease is free.
func (r *Reconciler) standBy(ctx context.Context) error {
	told := false
	for {
		err := r.Begin(ctx)
		var held *journal.Held
		if !errors.As(err, &held) {
			return err
		}
		if !told {
			r.log.Warn("standing by", "because", held.Error())
			told = true
		}
		r.meters.standingBy.Set(1)
		if !sleep(ctx, leaseFor/3) {
			return ctx.Err()
		}
	}
}

// keepLease renews the lease. When that fails until the lease has run out, or a newer one
// exists, everything stops: two must never write.
func (r *Reconciler) keepLease(ctx context.Context, stop context.CancelCauseFunc) {
	r.meters.standingBy.Set(0)
	for sleep(ctx, leaseFor/3) {
		err := r.ledger.renew(ctx)
		var fenced *journal.Fenced
		switch {
		case err == nil:
		case errors.As(err, &fenced):
			stop(err)
			return
		case ctx.Err() != nil:
			return
		case r.ledger.mayWrite() != nil:
			stop(fmt.Errorf("%w: %w", ErrNotHolder, err))
			return
		default:
			r.log.Error("the lease could not be renewed; trying again", "error", err)
		}
	}
}

// deliver sends what the outbox holds, and forgets what is old.
func (r *Reconciler) deliver(ctx context.Context) {
	for {
		if err := r.outbox.Deliver(ctx, r.now()); err != nil && ctx.Err() == nil {
			r.log.Warn("a notification could not be delivered; it is tried again", "error", err)
		}
		if err := r.forgetOld(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("old history could not be deleted", "error", err)
		}
		if !sleep(ctx, 5*time.Second) {
			return
		}
	}
}

// forgetOld deletes history that is older than the configuration keeps, a bounded piece at
// a time.
func (r *Reconciler) forgetOld(ctx context.Context) error {
	if r.now().Sub(r.forgot) < time.Hour {
		return nil
	}
	n, err := r.ledger.Prune(ctx, r.ledger.held().Fence, r.now().Add(-r.config.State.Keep), 10_000)
	if err == nil && n < 10_000 {
		r.forgot = r.now()
	}
	return err
}

// loop makes passes: one at once, then in the interval with jitter, sooner when it is
// woken, later while it fails.
func (f *follower) loop(ctx context.Context) {
	if !f.waitFor(ctx, f.spread()) {
		return
	}
	for {
		began := f.now()
		err := f.soundly(ctx)
		f.notePass(began, err)
		if ctx.Err() != nil {
			return
		}
		if !f.waitFor(ctx, f.pause(besidesForge(err))) {
			return
		}
	}
}

// soundly makes a pass whose panic is an error like another: a fault that one repository
// meets stops nothing of what is under way in the others. What was kept in memory is read
// again, as after a crash.
func (f *follower) soundly(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f.log.Error("a pass has panicked, which is a fault of sluice: please report it", "panic", p, "at", string(debug.Stack()))
			f.tree, f.memory, f.pulls, f.shown = nil, map[string]*stackMemory{}, pullMemory{}, map[string]*shownRollout{}
			err = fmt.Errorf("a fault of sluice, told in its log: panic: %v", p)
		}
	}()
	return f.pass(ctx)
}

// spread is when the first pass after a start comes: a share of the interval that a
// repository's name decides, so that a restart does not ask for everything at once.
func (f *follower) spread() time.Duration {
	if len(f.followers) == 1 {
		return 0
	}
	return share(f.config.Name, min(f.config.Interval/2, 20*time.Second))
}

// share is the part of a span that a name decides.
func share(name string, most time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return time.Duration(int64(most) * int64(h.Sum32()%1000) / 1000)
}

// pause is the wait until the next pass.
func (f *follower) pause(err error) time.Duration {
	wait := f.config.Interval
	var limited *gitsource.Limited
	if errors.As(err, &limited) {
		wait = max(wait, limited.Until.Sub(f.now()))
	} else if err != nil {
		wait = min(longestBackOff, wait<<min(f.health().Failures, 6))
		if f.underWay() || f.words { // what runs, and what people have asked for, waits for no back-off
			wait = min(wait, max(watchEvery, f.config.Interval))
		}
	} else if f.underWay() {
		wait = min(wait, watchEvery)
	}
	return wait - time.Duration(rand.Int64N(int64(wait)/10+1)) //nolint:gosec // jitter needs no secret
}

// watchEvery is the longest pause while a rollout is under way: a park is told soon.
const watchEvery = 15 * time.Second

func (f *follower) underWay() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.seen.UnderWay {
		if n > 0 {
			return true
		}
	}
	return false
}

// waitFor waits; false when ctx has ended. A wake ends the wait.
func (f *follower) waitFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-f.wake:
	case <-t.C:
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Once makes one pass over every repository, one after the other, and delivers what it
// has to tell.
func (r *Reconciler) Once(ctx context.Context) error {
	var errs []error
	for _, f := range r.followers {
		if err := r.ledger.renew(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
		began := f.now()
		err := f.pass(ctx)
		f.notePass(began, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("repository %s: %w", f.config.Name, err))
		}
	}
	return errors.Join(append(errs, r.outbox.Deliver(ctx, r.now()))...)
}
