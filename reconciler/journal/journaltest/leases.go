package journaltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

func thaws(t *testing.T, open Opener) {
	frozen, old := leased(t, open)
	require.NoError(t, frozen.Commit(t.Context(), old.Fence, journal.Batch{Begin: []journal.Intent{{ID: "create", At: start}}}))
	second := opened(t, open)
	later := start.Add(ttl)
	newer, err := second.Acquire(t.Context(), holder("b"), later, ttl)
	require.NoError(t, err)
	require.NoError(t, second.Commit(t.Context(), newer.Fence, put(one, "of b")))
	before := everythingIn(t, second)

	for name, write := range map[string]func(context.Context) error{
		"put": func(ctx context.Context) error { return frozen.Commit(ctx, old.Fence, put(one, "of a")) },
		"delete": func(ctx context.Context) error {
			return frozen.Commit(ctx, old.Fence, journal.Batch{Delete: []journal.Key{one}})
		},
		"begin": func(ctx context.Context) error {
			return frozen.Commit(ctx, old.Fence, journal.Batch{Begin: []journal.Intent{{ID: "x"}}})
		},
		"end": func(ctx context.Context) error {
			return frozen.Commit(ctx, old.Fence, journal.Batch{End: []journal.Outcome{{Intent: "create", Result: "done"}}})
		},
		"entry": func(ctx context.Context) error {
			return frozen.Commit(ctx, old.Fence, journal.Batch{Entries: []journal.Entry{{Text: "x"}}})
		},
		"empty": func(ctx context.Context) error { return frozen.Commit(ctx, old.Fence, journal.Batch{}) },
		"renew": func(ctx context.Context) error { _, err := frozen.Renew(ctx, old, later, ttl); return err },
		"prune": func(ctx context.Context) error { _, err := frozen.Prune(ctx, old.Fence, later, 10); return err },
	} {
		var fenced *journal.Fenced
		require.ErrorAs(t, write(t.Context()), &fenced, name)
		require.Equal(t, journal.Fenced{Mine: old.Fence, Newest: newer.Fence}, *fenced, name)
	}
	require.NoError(t, frozen.Release(t.Context(), old), "it has nothing to give back")
	require.Equal(t, before, everythingIn(t, second))
	who, err := second.Holder(t.Context())
	require.NoError(t, err)
	require.Equal(t, "b", who.Holder.ID)
	require.NoError(t, second.Commit(t.Context(), newer.Fence, put(one, "of b again")))
}

func fences(t *testing.T, open Opener) {
	j := open(t)
	last := journal.Fence(0)
	for range 3 {
		l, err := j.Acquire(t.Context(), holder("a"), start, ttl)
		require.NoError(t, err)
		require.Greater(t, l.Fence, last)
		last = l.Fence
	}
	require.NoError(t, j.Close())
	j = opened(t, open)
	l, err := j.Acquire(t.Context(), holder("b"), start.Add(time.Hour), ttl)
	require.NoError(t, err)
	require.Greater(t, l.Fence, last)
	_, err = j.Acquire(t.Context(), journal.Holder{}, start.Add(2*time.Hour), ttl)
	var bad *journal.Bad
	require.ErrorAs(t, err, &bad, "a holder without a name")
}

func expires(t *testing.T, open Opener) {
	a, l := leased(t, open)
	b := opened(t, open)
	var held *journal.Held
	_, err := b.Acquire(t.Context(), holder("b"), start.Add(ttl-time.Nanosecond), ttl)
	require.ErrorAs(t, err, &held)
	l, err = a.Renew(t.Context(), l, start.Add(20*time.Second), ttl)
	require.NoError(t, err)
	_, err = b.Acquire(t.Context(), holder("b"), start.Add(ttl), ttl)
	require.ErrorAs(t, err, &held, "it was renewed")
	require.NoError(t, a.Commit(t.Context(), l.Fence, put(one, "1")))
	l, err = a.Renew(t.Context(), l, start.Add(10*time.Minute), ttl)
	require.NoError(t, err, "it has expired, but nobody took it")
	require.Equal(t, start.Add(10*time.Minute+ttl), l.Expires)
	_, err = b.Acquire(t.Context(), holder("b"), start.Add(10*time.Minute+ttl), ttl)
	require.NoError(t, err)
}

func stepsBack(t *testing.T, open Opener) {
	a, l := leased(t, open)
	b := opened(t, open)
	var held *journal.Held
	for _, back := range []time.Duration{time.Second, ttl} {
		_, err := b.Acquire(t.Context(), holder("b"), start.Add(-back), ttl)
		require.ErrorAs(t, err, &held, "clocks differ a little: %s", back)
	}
	l, err := a.Renew(t.Context(), l, start.Add(-ttl), ttl)
	require.NoError(t, err, "its own clock stepped back")
	_, err = b.Acquire(t.Context(), holder("b"), start.Add(-24*time.Hour), ttl)
	require.NoError(t, err, "the lease was given by a clock that was a day ahead")
	var fenced *journal.Fenced
	require.ErrorAs(t, a.Commit(t.Context(), l.Fence, put(one, "1")), &fenced)
}

func toldHolder(t *testing.T, open Opener) {
	j := opened(t, open)
	_, err := j.Holder(t.Context())
	require.ErrorIs(t, err, journal.ErrNone)
	l, err := j.Acquire(t.Context(), holder("reconciler/1 é"), start, ttl)
	require.NoError(t, err)
	l, err = j.Renew(t.Context(), l, start.Add(5*time.Second), ttl)
	require.NoError(t, err)
	_, err = opened(t, open).Acquire(t.Context(), holder("b"), start.Add(6*time.Second), ttl)
	var held *journal.Held
	require.ErrorAs(t, err, &held)
	require.Equal(t, l, held.By)
	require.EqualError(t, err, "another reconciler writes here: reconciler/1 é (process 4711 on host-reconciler/1 é, since 2026-03-01T11:00:00Z, last heartbeat 2026-03-01T12:00:05Z); its lease ends at 2026-03-01T12:00:35Z unless it is renewed")
	got, err := j.Holder(t.Context())
	require.NoError(t, err)
	require.Equal(t, l, got)
}

func forced(t *testing.T, open Opener) {
	a, l := leased(t, open)
	other := opened(t, open)
	var held *journal.Held
	for _, at := range []time.Duration{0, 59 * time.Second, -59 * time.Second} {
		_, err := other.ForceRelease(t.Context(), start.Add(at), time.Minute)
		require.ErrorAs(t, err, &held, at)
	}
	require.NoError(t, a.Commit(t.Context(), l.Fence, put(one, "1")), "nothing was taken")
	was, err := other.ForceRelease(t.Context(), start.Add(time.Minute), time.Minute)
	require.NoError(t, err)
	require.Equal(t, l, was)
	var fenced *journal.Fenced
	require.ErrorAs(t, a.Commit(t.Context(), l.Fence, put(one, "2")), &fenced)
	_, err = a.Renew(t.Context(), l, start.Add(time.Minute), ttl)
	require.ErrorAs(t, err, &fenced)
	_, err = other.ForceRelease(t.Context(), start.Add(time.Hour), time.Minute)
	require.ErrorIs(t, err, journal.ErrNone)
	next, err := other.Acquire(t.Context(), holder("b"), start.Add(time.Minute), ttl)
	require.NoError(t, err)
	require.Greater(t, next.Fence, l.Fence)
	_, err = other.ForceRelease(t.Context(), start.Add(-24*time.Hour), time.Minute)
	require.NoError(t, err, "a heartbeat of tomorrow is no sign of life")
}

func released(t *testing.T, open Opener) {
	j, l := leased(t, open)
	require.NoError(t, j.Release(t.Context(), l))
	_, err := j.Holder(t.Context())
	require.ErrorIs(t, err, journal.ErrNone)
	var fenced *journal.Fenced
	require.ErrorAs(t, j.Commit(t.Context(), l.Fence, put(one, "late")), &fenced)
	require.NoError(t, j.Release(t.Context(), l), "twice is once")
	next, err := opened(t, open).Acquire(t.Context(), holder("b"), start, ttl)
	require.NoError(t, err)
	require.Greater(t, next.Fence, l.Fence)
	require.NoError(t, j.Release(t.Context(), l))
	got, err := j.Holder(t.Context())
	require.NoError(t, err)
	require.Equal(t, next, got, "one that is not the newest is left alone")
}

func oneGetsIt(t *testing.T, open Opener) {
	const wanting = 8
	errs := make([]error, wanting)
	journals := make([]journal.Journal, wanting)
	for i := range wanting {
		journals[i] = opened(t, open)
	}
	var wg sync.WaitGroup
	for i := range wanting {
		wg.Go(func() { _, errs[i] = journals[i].Acquire(t.Context(), holder(string(rune('a'+i))), start, ttl) })
	}
	wg.Wait()
	got := 0
	for _, err := range errs {
		var held *journal.Held
		if err == nil {
			got++
		} else {
			require.True(t, errors.As(err, &held), "%v", err)
		}
	}
	require.Equal(t, 1, got)
}
