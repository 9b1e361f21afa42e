package engineclient

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// A key that expired is read again from where it came, by each call that needs it and
// by none twice.
func TestAnExpiredKeyIsReadAgain(t *testing.T) {
	var valid atomic.Value
	valid.Store("monday")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+valid.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"id":"rol_1","state":"ROLLOUT_STATE_RUNNING"}`))
	}))
	defer s.Close()
	reads := 0
	source := func() (string, error) { reads++; return valid.Load().(string) + "\n", nil }
	c, err := New(Config{BaseURL: s.URL, APIKey: "monday", RenewKey: source, Project: "p"})
	require.NoError(t, err)
	_, err = c.GetRollout(t.Context(), "ep_1", "rol_1")
	require.NoError(t, err)
	require.Zero(t, reads)
	valid.Store("tuesday")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := c.CancelRollout(t.Context(), "ep_1", "rol_1", api.Control{Reason: "x"})
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Equal(t, 1, reads)

	stays, err := New(Config{BaseURL: s.URL, APIKey: "monday", Project: "p"})
	require.NoError(t, err)
	_, err = stays.GetRollout(t.Context(), "ep_1", "rol_1")
	require.Equal(t, http.StatusUnauthorized, statusOf(err))
	broken, err := New(Config{BaseURL: s.URL, APIKey: "monday", Project: "p", RenewKey: func() (string, error) { return "", errors.New("gone") }})
	require.NoError(t, err)
	_, err = broken.GetRollout(t.Context(), "ep_1", "rol_1")
	require.Equal(t, http.StatusUnauthorized, statusOf(err))
}

// A wait outlives a refused key for a minute when another may come, and ends with the
// first refusal when none can.
func TestAWaitOutlivesAKeyThatIsBeingRenewed(t *testing.T) {
	for name, c := range map[string]struct {
		grace, away time.Duration
		ends        bool
	}{
		"a key that stays":            {0, time.Second, true},
		"another one within a minute": {keyGrace, 40 * time.Second, false},
		"none within a minute":        {keyGrace, 3 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := &script{steps: []func() (Response, error){shows(in(StateRunning, 10)), func() (Response, error) {
					switch age := time.Since(began); {
					case age < c.away:
						return Response{Status: http.StatusUnauthorized, Header: http.Header{}, Body: []byte(`{"message":"expired"}`)}, nil
					default:
						return shown(in(StateCompleted, 100))
					}
				}}}
				client := over("u", "p", Retries{}, s)
				client.keyGrace = c.grace
				_, err := client.Await(t.Context(), "ep_1", "rol_1", nil)
				require.Equal(t, c.ends, statusOf(err) == http.StatusUnauthorized, "%v", err)
			})
		})
	}
}
