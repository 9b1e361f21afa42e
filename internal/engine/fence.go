package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// fence remembers that another engine has taken the store over. It never opens again.
type fence struct {
	mu   sync.Mutex
	err  error
	told context.CancelCauseFunc // ends Run; nil while it does not run
}

// watch has an engine's work ended once the store is lost.
func (f *fence) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told = cancel; f.err != nil {
		cancel(f.err)
	}
	return ctx, func() { cancel(nil) }
}

// lost passes an error on and remembers the one that is for good.
func (f *fence) lost(err error) error {
	if !errors.Is(err, rollout.ErrFenced) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("the engine ends: %w", err)
		if f.told != nil {
			f.told(f.err)
		}
	}
	return err
}

// gone is why the engine must not go on; nil as long as it may.
func (f *fence) gone() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// fencedStore tells the fence of every write that came too late.
type fencedStore struct {
	Store
	fence *fence
}

// Commit writes a change.
func (s fencedStore) Commit(ctx context.Context, c rollout.Change) error {
	return s.fence.lost(s.Store.Commit(ctx, c))
}

// Held fails once another engine has the store.
func (s fencedStore) Held(ctx context.Context) error { return s.fence.lost(s.Store.Held(ctx)) }
