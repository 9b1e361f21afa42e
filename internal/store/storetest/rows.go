package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func comesBack(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	hold, window := 3, 5*time.Minute
	ep := Endpoint("ep_1", "chat")
	ep.Split = []rollout.Weight{{Deployment: "dep_1", Weight: 0.1 + 0.2}}
	ep.Pair = &rollout.Pair{RolloutID: "rol_1", Source: "dep_1", Target: "dep_2", Percent: 10, Share: 1.0 / 3}
	ep.Generation = 1<<63 + 5
	ep.Owner = &rollout.Owner{ID: "reconciler-é", At: instant}
	d := deployment("dep_1", "ep_1", "v1 \"<ü>\" \x00")
	d.Autoscaling = rollout.Autoscaling{ScaleUpWindow: &window}
	r := Rollout("rol_1", "ep_1", rollout.SystemPaused)
	r.Hold, r.Peeks = &hold, []rollout.Peek{{At: instant, Breached: []int{0}}}
	r.Condition = &rollout.Condition{Category: rollout.UnderServed, Message: "a\nb", At: instant}
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{ep}, Deployments: []rollout.Deployment{d}, Rollouts: []rollout.Rollout{r}})

	ep.Version, d.Version, r.Version = 1, 1, 1
	gotEndpoint, err := s.Endpoint(ctx, "ep_1")
	require.NoError(t, err)
	require.Equal(t, ep, gotEndpoint)
	gotDeployment, err := s.Deployment(ctx, "dep_1")
	require.NoError(t, err)
	require.Equal(t, d, gotDeployment)
	gotRollout, err := s.Rollout(ctx, "rol_1")
	require.NoError(t, err)
	require.Equal(t, r, gotRollout)

	_, err = s.Endpoint(ctx, "ep_none")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	_, err = s.Deployment(ctx, "'; DROP TABLE deployments; --")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	_, err = s.Rollout(ctx, "")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	_, err = s.Project(ctx)
	require.ErrorIs(t, err, rollout.ErrNotFound)
	require.NoError(t, s.Ping(ctx))
}

func staleIsConflict(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}})
	read, err := s.Endpoint(ctx, "ep_1")
	require.NoError(t, err)
	require.EqualValues(t, 1, read.Version)

	read.Visibility = "first"
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{read}})
	read.Visibility = "second" // still version 1
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{read}}), rollout.ErrConflict)
	now, err := s.Endpoint(ctx, "ep_1")
	require.NoError(t, err)
	require.Equal(t, "first", now.Visibility)
	require.EqualValues(t, 2, now.Version)

	gone := rollout.Ref{Kind: rollout.KindEndpoint, ID: "ep_1", Version: 1}
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Delete: []rollout.Ref{gone}}), rollout.ErrConflict, "a delete of an old version")
	gone.Version = 2
	commit(t, s, rollout.Change{Delete: []rollout.Ref{gone}})
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{now}}), rollout.ErrConflict, "a change of a row that is gone")
}

func allOrNothing(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}})
	stale := Endpoint("ep_1", "chat")
	stale.Version = 7
	err := s.Commit(ctx, rollout.Change{
		Deployments: []rollout.Deployment{deployment("dep_1", "ep_1", "v1")},
		Keys:        []rollout.Key{{ID: "key_1", Hash: "h"}},
		Rollouts:    []rollout.Rollout{Rollout("rol_1", "ep_1", rollout.Pending)},
		Events:      []rollout.Event{{EndpointID: "ep_1", Type: "x"}},
		Answers:     []rollout.Answer{{Key: "k", At: instant}},
		Endpoints:   []rollout.Endpoint{stale},
	})
	require.ErrorIs(t, err, rollout.ErrConflict)
	deployments, err := s.Deployments(ctx, "ep_1")
	require.NoError(t, err)
	require.Empty(t, deployments)
	rollouts, err := s.Rollouts(ctx, "ep_1")
	require.NoError(t, err)
	require.Empty(t, rollouts)
	all, err := s.Keys(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
	events, _, err := s.Events(ctx, rollout.EventQuery{EndpointID: "ep_1", Limit: 10})
	require.NoError(t, err)
	require.Empty(t, events)
	_, err = s.Answer(ctx, "k")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	require.NoError(t, s.Commit(ctx, rollout.Change{}), "an empty change is none")
}

func oneOpenRollout(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "a"), Endpoint("ep_2", "b")}})
	commit(t, s, rollout.Change{Rollouts: []rollout.Rollout{Rollout("rol_1", "ep_1", rollout.Pending), Rollout("rol_over", "ep_1", rollout.Completed)}})
	for _, state := range rollout.States() {
		err := s.Commit(ctx, rollout.Change{Rollouts: []rollout.Rollout{Rollout("rol_"+string(state), "ep_1", state)}})
		if state.Terminal() {
			require.NoError(t, err, "history has no limit")
			continue
		}
		require.ErrorIs(t, err, rollout.ErrExists, state)
	}
	commit(t, s, rollout.Change{Rollouts: []rollout.Rollout{Rollout("rol_2", "ep_2", rollout.Running)}}) // another endpoint's slot
	r, err := s.Rollout(ctx, "rol_1")
	require.NoError(t, err)
	r.State = rollout.Canceled
	commit(t, s, rollout.Change{Rollouts: []rollout.Rollout{r}})
	commit(t, s, rollout.Change{Rollouts: []rollout.Rollout{Rollout("rol_3", "ep_1", rollout.Pending)}})
	left, err := s.OpenRollouts(ctx)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func namesTakenOnce(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat"), Endpoint("ep_2", "other")}})
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_3", "chat")}}), rollout.ErrExists)
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "fresh")}}), rollout.ErrExists, "an id is taken once too")
	commit(t, s, rollout.Change{Deployments: []rollout.Deployment{deployment("dep_1", "ep_1", "v1"), deployment("dep_2", "ep_2", "v1")}})
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Deployments: []rollout.Deployment{deployment("dep_3", "ep_1", "v1")}}), rollout.ErrExists)
	commit(t, s, rollout.Change{Delete: []rollout.Ref{{Kind: rollout.KindDeployment, ID: "dep_1"}}, Deployments: []rollout.Deployment{deployment("dep_4", "ep_1", "v1")}})
}

func endpointWithRows(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Deployments: []rollout.Deployment{deployment("dep_1", "ep_gone", "v1")}}), rollout.ErrConflict)
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}})
	commit(t, s, rollout.Change{Deployments: []rollout.Deployment{deployment("dep_1", "ep_1", "v1")}})
	drop := rollout.Ref{Kind: rollout.KindEndpoint, ID: "ep_1", Version: 1}
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Delete: []rollout.Ref{drop}}), rollout.ErrConflict)
	commit(t, s, rollout.Change{Delete: []rollout.Ref{{Kind: rollout.KindDeployment, ID: "dep_1"}, drop}})
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}}) // and the store goes on writing
}

func orders(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	for i, id := range []string{"b", "a", "c"} {
		ep := Endpoint("ep_"+id, id)
		ep.CreatedAt = instant.Add(time.Duration(i) * time.Nanosecond)
		d := deployment("dep_"+id, "ep_"+id, "v1")
		d.CreatedAt = ep.CreatedAt
		r := Rollout("rol_"+id, "ep_"+id, rollout.Pending)
		r.CreatedAt = ep.CreatedAt
		commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{ep}, Deployments: []rollout.Deployment{d}, Rollouts: []rollout.Rollout{r}})
	}
	endpoints, err := s.Endpoints(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"ep_c", "ep_a", "ep_b"}, ids(endpoints, func(e rollout.Endpoint) string { return e.ID }))
	deployments, err := s.Deployments(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []string{"dep_c", "dep_a", "dep_b"}, ids(deployments, func(d rollout.Deployment) string { return d.ID }))
	mine, err := s.Deployments(ctx, "ep_a")
	require.NoError(t, err)
	require.Len(t, mine, 1)
	left, err := s.OpenRollouts(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"rol_b", "rol_a", "rol_c"}, ids(left, func(r rollout.Rollout) string { return r.ID }))
}

func ids[T any](rows []T, of func(T) string) []string {
	out := make([]string, 0, len(rows))
	for _, r := range rows {
		out = append(out, of(r))
	}
	return out
}

// twoWriters counts up one row from many goroutines: no count may be lost, and no
// writer may meet anything but a conflict.
func twoWriters(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}})
	const writers, each = 6, 15
	var wg sync.WaitGroup
	failed := make(chan error, writers)
	for range writers {
		wg.Go(func() {
			for n := 0; n < each; {
				ep, err := s.Endpoint(ctx, "ep_1")
				if err == nil {
					ep.Generation++
					err = s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{ep}, Events: []rollout.Event{{EndpointID: "ep_1", Type: "x", Message: fmt.Sprint(ep.Generation)}}})
				}
				switch {
				case err == nil:
					n++
				case !errors.Is(err, rollout.ErrConflict):
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	require.NoError(t, <-failed)
	ep, err := s.Endpoint(ctx, "ep_1")
	require.NoError(t, err)
	require.EqualValues(t, writers*each, ep.Generation)
	rows, _, err := s.Events(ctx, rollout.EventQuery{EndpointID: "ep_1", Limit: 1000})
	require.NoError(t, err)
	require.Len(t, rows, writers*each, "an event a commit, none of a conflict")
	for i, e := range rows {
		require.Equal(t, fmt.Sprint(writers*each-i), e.Message)
	}
}

func keys(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	k := rollout.Key{ID: "key_1", Name: "ci", Hash: "abc", Scopes: []rollout.Scope{rollout.ScopeRead}, CreatedAt: instant}
	commit(t, s, rollout.Change{Keys: []rollout.Key{k}})
	got, err := s.KeyHashed(ctx, "abc")
	require.NoError(t, err)
	require.Equal(t, "ci", got.Name)
	_, err = s.KeyHashed(ctx, "ABC")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Keys: []rollout.Key{{ID: "key_2", Hash: "abc"}}}), rollout.ErrExists)
	commit(t, s, rollout.Change{Delete: []rollout.Ref{{Kind: rollout.KindKey, ID: "key_1"}}})
	_, err = s.KeyHashed(ctx, "abc")
	require.ErrorIs(t, err, rollout.ErrNotFound)
}

func answers(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	a := rollout.Answer{Key: "k1", Digest: "d", Subject: "rol_1", At: instant}
	commit(t, s, rollout.Change{Answers: []rollout.Answer{a}})
	got, err := s.Answer(ctx, "k1")
	require.NoError(t, err)
	require.Equal(t, "rol_1", got.Subject)
	require.True(t, got.At.Equal(instant))
	a.Subject = "rol_2"
	require.ErrorIs(t, s.Commit(ctx, rollout.Change{Answers: []rollout.Answer{a}}), rollout.ErrExists)
	require.NoError(t, s.ForgetAnswers(ctx, instant))
	_, err = s.Answer(ctx, "k1")
	require.NoError(t, err, "not older than the instant")
	require.NoError(t, s.ForgetAnswers(ctx, instant.Add(1)))
	_, err = s.Answer(ctx, "k1")
	require.ErrorIs(t, err, rollout.ErrNotFound)
}

func slots(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx := t.Context()
	at := func(n int) time.Time { return instant.Add(time.Duration(n) * time.Second) }
	slot := func(n int, data string) rollout.MeterSlot {
		return rollout.MeterSlot{Key: fmt.Sprintf("s%d", n), Start: at(n), Data: []byte(data)}
	}
	require.NoError(t, s.SaveSlots(ctx, []rollout.MeterSlot{slot(2, "two"), slot(1, "one\x00\xff"), slot(3, "three")}, at(0)))
	require.NoError(t, s.SaveSlots(ctx, []rollout.MeterSlot{slot(2, "other")}, at(2)))
	got, err := s.Slots(ctx, at(0))
	require.NoError(t, err)
	require.Equal(t, []string{"s2", "s3"}, ids(got, func(m rollout.MeterSlot) string { return m.Key }), "older than keep are dropped, order by start")
	require.Equal(t, "two", string(got[0].Data), "what is kept stays")
	got, err = s.Slots(ctx, at(3))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, got[0].Start.Equal(at(3)))
}

func reopens(t *testing.T, open Opener) {
	s := open(t)
	p := rollout.Project{ID: "proj_a", Slug: "demo", Name: "Demo", Organization: "org"}
	require.NoError(t, s.SaveProject(t.Context(), p))
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}, Events: []rollout.Event{{EndpointID: "ep_1", Type: "a"}}})
	commit(t, s, rollout.Change{Rollouts: []rollout.Rollout{Rollout("rol_1", "ep_1", rollout.Running)}})
	require.NoError(t, s.Close())
	require.Error(t, s.Ping(t.Context()))

	s = opened(t, open)
	got, err := s.Project(t.Context())
	require.NoError(t, err)
	require.Equal(t, p, got)
	left, err := s.OpenRollouts(t.Context())
	require.NoError(t, err)
	require.Len(t, left, 1)
	commit(t, s, rollout.Change{Events: []rollout.Event{{EndpointID: "ep_1", Type: "b"}}})
	rows, _, err := s.Events(t.Context(), rollout.EventQuery{EndpointID: "ep_1", Limit: 9})
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a"}, ids(rows, func(e rollout.Event) string { return string(e.Type) }))
	require.NotEqual(t, rows[0].ID, rows[1].ID)
}

func canceled(t *testing.T, open Opener) {
	s := opened(t, open)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, s.Commit(ctx, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}}))
	_, err := s.Endpoint(t.Context(), "ep_1")
	require.ErrorIs(t, err, rollout.ErrNotFound)
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}}) // the writer is free
}

func requires(t *testing.T, open Opener) {
	s := opened(t, open)
	commit(t, s, rollout.Change{Endpoints: []rollout.Endpoint{Endpoint("ep_1", "chat")}, Rollouts: []rollout.Rollout{Rollout("rol_1", "ep_1", rollout.Running)}})
	ep, err := s.Endpoint(t.Context(), "ep_1")
	require.NoError(t, err)
	write := func(version int64, id string) error {
		return s.Commit(t.Context(), rollout.Change{Endpoints: []rollout.Endpoint{ep}, Require: []rollout.Ref{{Kind: rollout.KindRollout, ID: id, Version: version}}})
	}
	require.ErrorIs(t, write(7, "rol_1"), rollout.ErrConflict)
	require.ErrorIs(t, write(1, "rol_none"), rollout.ErrConflict)
	same, err := s.Endpoint(t.Context(), "ep_1")
	require.NoError(t, err)
	require.Equal(t, ep.Version, same.Version, "nothing was written")
	require.NoError(t, write(1, "rol_1"))
}
