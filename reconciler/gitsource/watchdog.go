package gitsource

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
)

// abandoned counts calls of all remotes that go on after their deadline.
var abandoned atomic.Int64

// Abandoned is how many calls, of all remotes of this process, still run although
// their deadline is over and their caller has gone on. It is a gauge: one that ends
// late is no longer counted. It should be 0.
func Abandoned() int { return int(abandoned.Load()) }

// watchdog lets a caller go on at its deadline whatever the call does.
type watchdog struct {
	remote  string
	most    int64
	hanging atomic.Int64
}

// watched runs fn and returns what it returns, or the context's error as soon as that
// has one. fn gets the same context and is expected to end soon after it does; until
// then it counts as abandoned.
func watched[T any](ctx context.Context, w *watchdog, what string, fn func(context.Context) (T, error)) (T, error) {
	var none T
	if n := w.hanging.Load(); n >= w.most {
		return none, &Stuck{Remote: w.remote, Calls: strconv.FormatInt(n, 10)}
	}
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s of %s: %w", what, w.remote, err)
	}
	type result struct {
		value T
		err   error
	}
	// Whoever comes second settles the count: state is 0, then 1 when one side is through.
	var state atomic.Int32
	done := make(chan result, 1)
	go func() {
		value, err := guarded(ctx, what, fn)
		done <- result{value, err}
		if !state.CompareAndSwap(0, 1) { // its caller has left
			w.hanging.Add(-1)
			abandoned.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	w.hanging.Add(1)
	abandoned.Add(1)
	if !state.CompareAndSwap(0, 1) { // it ended at the same time
		w.hanging.Add(-1)
		abandoned.Add(-1)
	}
	return none, fmt.Errorf("%s of %s did not end in time: %w", what, w.remote, ctx.Err())
}

// guarded turns a panic of the library below into an error: what a remote sends must
// not end the process.
func guarded[T any](ctx context.Context, what string, fn func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s failed inside: %v", what, p)
		}
	}()
	return fn(ctx)
}
