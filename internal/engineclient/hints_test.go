package engineclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// world is an engine in virtual time: a rollout that runs until done, and a stream
// that behaves as its source says.
type world struct {
	done         time.Time
	capabilities []string
	mu           sync.Mutex
	polls        []time.Time
}

func (w *world) Do(_ context.Context, req Request) (Response, error) {
	if req.Path == "/v1/whoami" {
		return shown(api.WhoAmI{ProjectID: "p", Sluice: &api.WhoAmIExtra{Capabilities: w.capabilities}})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polls = append(w.polls, time.Now())
	r, soak := in(StateRunning, 10), api.Duration(300*time.Second)
	if !time.Now().Before(w.done) {
		r = in(StateCompleted, 100)
	}
	r.Sluice = &api.RolloutExtra{Soak: &soak}
	return shown(r)
}

// sourceFunc is one attempt at a stream.
type sourceFunc func(ctx context.Context, last string, l listener) (string, error)

func (f sourceFunc) read(ctx context.Context, _ Request, last string, l listener) (string, error) {
	return f(ctx, last, l)
}

// tells opens at once and reports the rollout's end when it happens.
func (w *world) tells(ctx context.Context, _ string, l listener) (string, error) {
	l.opened()
	if err := sleep(ctx, time.Until(w.done)); err != nil {
		return "", err
	}
	l.event(api.Event{SubjectID: "rol_other"})
	l.event(api.Event{SubjectID: "rol_1"})
	<-ctx.Done()
	return "evt_1", ctx.Err()
}

// latency is the time from the rollout's end to that of the wait.
func latency(t *testing.T, w *world, s source) time.Duration {
	t.Helper()
	c := over("u", "p", Retries{}, w)
	if s != nil {
		c = c.following(s)
	}
	w.done = time.Now().Add(337 * time.Second)
	got, err := c.Await(t.Context(), "ep_1", "rol_1", nil)
	require.NoError(t, err)
	require.Equal(t, Completed, got.Outcome)
	return time.Since(w.done)
}

func TestAnEventEndsAWaitAtOnceAndNeverMakesItPollLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polled := &world{}
		without := latency(t, polled, nil)
		streamed := &world{capabilities: []string{CanStream}}
		with := latency(t, streamed, sourceFunc(streamed.tells))
		require.LessOrEqual(t, with, 2*closestPolls)
		require.GreaterOrEqual(t, without, 20*with)
		for _, polls := range [][]time.Time{polled.polls, streamed.polls} {
			for i := 1; i < len(polls); i++ {
				require.LessOrEqual(t, polls[i].Sub(polls[i-1]), slowestPoll, "the floor")
			}
		}
		t.Logf("measured in virtual time: %s from the end of the rollout to that of the wait with events, %s without", with, without)
	})
}

// A stream that is missing, refused, broken, silent or full of others' events leaves
// the wait with what polling gives.
func TestAWaitNeedsNoStream(t *testing.T) {
	for name, s := range map[string]sourceFunc{
		"refused": func(context.Context, string, listener) (string, error) { return "", &api.Error{Status: 404} },
		"breaks":  func(_ context.Context, _ string, l listener) (string, error) { l.opened(); return "", io.EOF },
		"silent": func(ctx context.Context, _ string, l listener) (string, error) {
			l.opened()
			<-ctx.Done()
			return "", ctx.Err()
		},
		"of others": func(ctx context.Context, _ string, l listener) (string, error) {
			for sleep(ctx, 100*time.Millisecond) == nil {
				l.event(api.Event{SubjectID: "rol_other"})
			}
			return "", ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{capabilities: []string{CanStream}}
				require.LessOrEqual(t, latency(t, w, s), slowestPoll)
				require.Less(t, len(w.polls), 100)
				require.GreaterOrEqual(t, len(w.polls), int(337*time.Second/slowestPoll))
			})
		})
	}
	t.Run("hosted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			require.LessOrEqual(t, latency(t, &world{}, sourceFunc(func(context.Context, string, listener) (string, error) {
				t.Error("an engine that announces no stream is not asked for one")
				return "", errors.New("asked")
			})), slowestPoll)
		})
	})
}

// A thousand events a second are a poll every 50 ms at most.
func TestAFloodOfEventsIsNotAFloodOfPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{capabilities: []string{CanStream}}
		latency(t, w, sourceFunc(func(ctx context.Context, _ string, l listener) (string, error) {
			for sleep(ctx, time.Millisecond) == nil {
				l.event(api.Event{SubjectID: "rol_1"})
			}
			return "", ctx.Err()
		}))
		for i := 1; i < len(w.polls); i++ {
			require.GreaterOrEqual(t, w.polls[i].Sub(w.polls[i-1]), closestPolls)
		}
	})
}

// A stream that broke is opened again from where it was, by all waits together once.
func TestWaitsForOneEndpointShareOneStreamThatResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{capabilities: []string{CanStream}, done: time.Now().Add(100 * time.Second)}
		c := over("u", "p", Retries{}, w)
		var mu sync.Mutex
		var lasts []string
		open, most := 0, 0
		c = c.following(sourceFunc(func(ctx context.Context, last string, l listener) (string, error) {
			mu.Lock()
			lasts = append(lasts, last)
			open++
			most = max(most, open)
			mu.Unlock()
			defer func() { mu.Lock(); open--; mu.Unlock() }()
			l.opened()
			_ = sleep(ctx, 40*time.Second)
			return "evt_7", io.EOF
		}))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, err := c.Await(t.Context(), "ep_1", "rol_1", nil)
				require.NoError(t, err)
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Equal(t, 1, most)
		require.Zero(t, open, "the last wait ends the stream")
		require.Equal(t, []string{"", "evt_7", "evt_7"}, lasts[:3])
		require.Empty(t, c.hints.feeds)
	})
}

type heard struct{ lines []string }

func (h *heard) opened()           { h.lines = append(h.lines, "opened") }
func (h *heard) event(e api.Event) { h.lines = append(h.lines, e.Type) }

func TestAStreamIsReadAsTheStandardSays(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "text/event-stream", r.Header.Get("Accept"))
		require.Equal(t, "evt_1", r.Header.Get("Last-Event-ID"))
		require.Equal(t, "Bearer k", r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "retry: 1000\n: following\n\n"+"id: evt_2\ndata: {\"type\":\"a\"}\n\n: alive\n\nid:evt_3\ndata:{\"type\":\"b\"}\n\nid: evt_4\ndata: {\"type\":\"c\"}\n") // cut off inside
	}))
	defer s.Close()
	h := &heard{}
	from := streams{wire: wire{http: s.Client(), base: s.URL, keys: &keyring{key: "k"}}, patience: time.Minute}
	last, err := from.read(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, "evt_1", h)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "evt_3", last, "an event that did not end was not heard")
	require.Equal(t, []string{"opened", "a", "b"}, h.lines)
}

func TestAStreamThatStallsBeforeItsHeadIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	from := streams{wire: wire{http: s.Client(), base: s.URL, keys: &keyring{key: "k"}}, patience: 50 * time.Millisecond}
	_, err := from.read(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, "", &heard{})
	require.ErrorIs(t, err, errStalled)
}
