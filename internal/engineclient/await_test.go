package engineclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// script is an engine whose answers are a list; the last one repeats.
type script struct {
	steps []func() (Response, error)
	calls int
	at    []time.Time
}

func (s *script) Do(_ context.Context, _ Request) (Response, error) {
	i := min(s.calls, len(s.steps)-1)
	s.calls++
	s.at = append(s.at, time.Now())
	return s.steps[i]()
}

// shown is an answer of 200 with a body.
func shown(v any) (Response, error) {
	b, err := json.Marshal(v)
	return Response{Status: 200, Header: http.Header{}, Body: b}, err
}

func shows(r api.Rollout) func() (Response, error) {
	return func() (Response, error) { return shown(r) }
}

func in(state string, percent int) api.Rollout {
	return api.Rollout{ID: "rol_1", State: state, CurrentTrafficPercent: &percent}
}

func down() (Response, error) { return Response{}, errors.New("connection refused") }

func status(code int, body string) func() (Response, error) {
	return func() (Response, error) {
		return Response{Status: code, Header: http.Header{}, Body: []byte(body)}, nil
	}
}

type record struct{ lines []string }

func (r *record) Changed(c Change) {
	r.lines = append(r.lines, fmt.Sprintf("%s %d", Short(c.After.State), orUnset(c.After.CurrentTrafficPercent)))
}
func (r *record) Lost(error, time.Duration) { r.lines = append(r.lines, "lost") }

func TestAwaitEndsAtEveryFinalOrParkedState(t *testing.T) {
	for state, want := range map[string]Outcome{
		StateCompleted: Completed, StateCanceled: Canceled, StatePaused: WasParked, StateSystemPaused: WasParked,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []func() (Response, error){shows(in(StateRunning, 0)), shows(in(StateStabilizing, 10)), shows(in(StateStabilizing, 10)), shows(in(state, 10))}}
			sink := &record{}
			got, err := over("u", "p", Retries{}, s).Await(context.Background(), "ep_1", "rol_1", sink)
			require.NoError(t, err)
			require.Equal(t, want, got.Outcome)
			require.Equal(t, []string{"RUNNING 0", "STABILIZING 10", Short(state) + " 10"}, sink.lines)
			require.Equal(t, 4, s.calls, "a final state is never polled again")
		})
	}
}

func TestAwaitOutlivesAnEngineRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.steps = append(s.steps, shows(in(StateRunning, 10)))
		for range 40 {
			s.steps = append(s.steps, down)
		}
		s.steps = append(s.steps, status(502, "bad gateway"), status(500, "{}"), shows(in(StateCompleted, 100)))
		sink := &record{}
		got, err := over("u", "p", Retries{}, s).Await(context.Background(), "ep_1", "rol_1", sink)
		require.NoError(t, err)
		require.Equal(t, Completed, got.Outcome)
		require.Equal(t, []string{"RUNNING 10", "lost", "COMPLETED 100"}, sink.lines)
	})
}

func TestAwaitTellsTheLastStateWhenInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		s := &script{steps: []func() (Response, error){shows(in(StateStabilizing, 10))}}
		began := time.Now()
		_, err := over("u", "p", Retries{}, s).Await(ctx, "ep_1", "rol_1", nil)
		var i *Interrupted
		require.ErrorAs(t, err, &i)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, StateStabilizing, i.Last.State)
		require.Equal(t, 10*time.Minute, time.Since(began), "the end of the context ends the wait at once")
	})
}

func TestAwaitStopsOnAStateItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func() (Response, error){shows(in("ROLLOUT_STATE_TELEPORTING", 10))}}
		_, err := over("u", "p", Retries{}, s).Await(context.Background(), "ep_1", "rol_1", nil)
		var u *UnexpectedState
		require.ErrorAs(t, err, &u)
		require.Equal(t, unknownPolls, s.calls)
		require.ErrorContains(t, err, "TELEPORTING")
	})
}

func TestAwaitBelievesANotFoundOnlyTwiceAndOnlyFromTheEngine(t *testing.T) {
	gone := `{"message":"no","error":{"message":"no rollout rol_1","type":"invalid_request_error","param":null,"code":"NOT_FOUND"}}`
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func() (Response, error){status(404, gone), shows(in(StateRunning, 0)), status(404, "<html>"), status(404, "<html>"), status(404, "<html>"), shows(in(StateRunning, 0)), status(404, gone), status(404, gone)}}
		_, err := over("u", "p", Retries{}, s).Await(context.Background(), "ep_1", "rol_1", nil)
		require.True(t, IsNotFound(err), err)
		require.Equal(t, 8, s.calls)
	})
}

func TestAwaitStopsWhenTheKeyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func() (Response, error){status(401, `{"error":{"message":"no such key","type":"auth"}}`)}}
		_, err := over("u", "p", Retries{}, s).Await(context.Background(), "ep_1", "rol_1", nil)
		require.EqualError(t, err, "no such key")
	})
}

func TestPollsSlowDownToATenthOfAStepAndAtMostHalfAMinute(t *testing.T) {
	for soak, slowest := range map[time.Duration]time.Duration{
		4 * time.Second: 400 * time.Millisecond, 390 * time.Second: 30 * time.Second, 100 * time.Second: 10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 100*slowest)
			defer cancel()
			r := in(StateStabilizing, 10)
			d := api.Duration(soak)
			r.Sluice = &api.RolloutExtra{Soak: &d}
			s := &script{steps: []func() (Response, error){shows(r)}}
			_, err := over("u", "p", Retries{}, s).Await(ctx, "ep_1", "rol_1", nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.LessOrEqual(t, s.at[1].Sub(s.at[0]), time.Second)
			for i := len(s.at) / 2; i < len(s.at); i++ {
				gap := s.at[i].Sub(s.at[i-1])
				require.LessOrEqual(t, gap, slowest)
				require.GreaterOrEqual(t, gap, min(slowest, time.Second)/2)
			}
		})
	}
}

// TestAThousandPollsSendNoControl guards against the incident in which a wait's own
// poll context was taken for an interrupt and every healthy deploy was rolled back.
func TestAThousandPollsSendNoControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := &onlyReads{t: t, left: 1000}
		got, err := over("u", "p", Retries{}, reads).Await(context.Background(), "ep_1", "rol_1", nil)
		require.NoError(t, err)
		require.Equal(t, Completed, got.Outcome)
	})
}

type onlyReads struct {
	t    *testing.T
	left int
}

func (o *onlyReads) Do(_ context.Context, req Request) (Response, error) {
	require.Equal(o.t, http.MethodGet, req.Method)
	o.left--
	if o.left <= 0 {
		return shows(in(StateCompleted, 100))()
	}
	return shows(in(StateStabilizing, 10))()
}
