package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// E1 (argo-rollouts#2117): a process that was frozen wakes up after another took its
// place. Each way in which it can write is refused, and what the other wrote stays.
func TestE1AStoreThatWasTakenOverIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	frozen, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = frozen.Close() })
	require.NoError(t, frozen.Held(t.Context()))
	at := time.Unix(1_700_000_000, 0)
	ep := rollout.Endpoint{ID: "ep_1", ProjectID: "p", Name: "chat", CreatedAt: at}
	require.NoError(t, frozen.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{ep}}))

	now, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, now.Close()) })
	ep.Version, ep.Generation = 1, 7
	for name, write := range map[string]func(context.Context) error{
		"commit": func(ctx context.Context) error {
			return frozen.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{ep}})
		},
		"event": func(ctx context.Context) error {
			return frozen.Commit(ctx, rollout.Change{Events: []rollout.Event{{EndpointID: "ep_1", At: at}}})
		},
		"delete": func(ctx context.Context) error {
			return frozen.Commit(ctx, rollout.Change{Delete: []rollout.Ref{{Kind: rollout.KindEndpoint, ID: "ep_1"}}})
		},
		"project": func(ctx context.Context) error { return frozen.SaveProject(ctx, rollout.Project{ID: "other"}) },
		"slots": func(ctx context.Context) error {
			return frozen.SaveSlots(ctx, []rollout.MeterSlot{{Key: "k", Start: at}}, at)
		},
		"answers": func(ctx context.Context) error { return frozen.ForgetAnswers(ctx, at) },
	} {
		err := write(t.Context())
		require.ErrorIs(t, err, rollout.ErrFenced, name)
		require.ErrorContains(t, err, fmt.Sprintf("process %d on ", os.Getpid()), name)
	}
	require.ErrorIs(t, frozen.Held(t.Context()), rollout.ErrFenced)

	require.NoError(t, now.Held(t.Context()))
	got, err := now.Endpoint(t.Context(), "ep_1")
	require.NoError(t, err)
	require.Zero(t, got.Generation)
	events, _, err := now.Events(t.Context(), rollout.EventQuery{EndpointID: "ep_1", Limit: 10})
	require.NoError(t, err)
	require.Empty(t, events)
	_, err = now.Project(t.Context())
	require.ErrorIs(t, err, rollout.ErrNotFound)
	ep.Generation = 8
	require.NoError(t, now.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{ep}}))
}

func TestTheHolderOfAStoreIsTold(t *testing.T) {
	dir := t.TempDir()
	_, err := store.Holder(t.Context(), dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	holder, err := store.Holder(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, holder, fmt.Sprintf("process %d on ", os.Getpid()))
	require.NoError(t, s.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sluice.db"), []byte("something else, and not short at all"), 0o600))
	_, err = store.Holder(t.Context(), dir)
	require.Error(t, err)
}
