package reconciler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// lagging is an engine whose readings are, for a while after each write, those from
// before it.
type lagging struct {
	w     *stage
	lag   time.Duration
	wrote time.Time
	kept  map[string][]byte // newest true answer by address
	stale int               // answers that were old
}

func (l *lagging) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		resp, err := l.w.RoundTrip(req)
		if err == nil && resp.StatusCode < http.StatusMultipleChoices && !strings.Contains(req.URL.Path, "preview") {
			l.wrote = l.w.now
		}
		return resp, err
	}
	key := req.URL.String()
	if old, ok := l.kept[key]; ok && l.w.now.Before(l.wrote.Add(l.lag)) {
		l.stale++
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(old)), Request: req}, nil
	}
	resp, err := l.w.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	l.kept[key] = body
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// count is how many calls of a method reached an address that ends so.
func (w *stage) count(method, end string) int {
	n := 0
	for _, c := range w.calls {
		if c.Method == method && strings.HasSuffix(c.Path, end) {
			n++
		}
	}
	return n
}

// E3: an engine that serves a state of three seconds ago after each write is not written
// to twice: nothing is made or started a second time.
func TestOldReadingsAfterAWriteMakeNothingTwice(t *testing.T) {
	w := newStage(t)
	l := &lagging{w: w, lag: 3 * time.Second, kept: map[string][]byte{}}
	w.Client = w.clientOver(l, w.key)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	dense := func(d time.Duration) {
		for i, until := 1, w.now.Add(d); w.now.Before(until); i++ {
			_ = w.pass()                                                 // one that is told of a conflict is followed by one that looks again
			w.advance(time.Second + time.Duration(i%3/2)*time.Minute/10) // webhooks hasten two of three passes
		}
	}
	dense(3 * time.Minute)
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	dense(2 * time.Minute)
	require.Positive(t, l.stale)
	w.advance(5 * time.Second)
	require.Equal(t, 1, w.count(http.MethodPost, "/start"), w.show())
	require.Equal(t, 1, w.count(http.MethodPost, "/rollouts"))
	require.Zero(t, w.told("stack.failed"), "an old reading is no failure")
	w.until("it ends", 3*time.Hour, w.phase(InStep))
	require.Len(t, w.all("chat"), 1)
	require.Len(t, w.endpoint("chat").Deployments, 2)
}

// E9: a restart over a hundred stacks reads only, and lists the endpoints once.
func TestARestartOverAHundredStacksReadsOnly(t *testing.T) {
	w := newStage(t)
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("s%02d/main.tf", i)] = fmt.Sprintf("resource \"sluice_endpoint\" \"e\" {\n  name = \"e%02d\"\n}\n", i)
	}
	w.follow("models", files)
	rc := w.repository("models")
	rc.Stacks = nil
	for i := range 100 {
		rc.Stacks = append(rc.Stacks, StackConfig{Name: fmt.Sprintf("s%02d", i), Folder: fmt.Sprintf("s%02d", i)})
	}
	w.begin()
	require.NoError(t, w.pass())
	require.NoError(t, w.pass())
	require.Equal(t, InStep, w.stack("models", "s99").Phase, w.show())
	n := len(w.calls)
	w.begin()
	require.NoError(t, w.pass())
	require.Empty(t, w.writes(n))
	lists := 0
	for _, c := range w.calls[n:] {
		if strings.HasSuffix(c.Path, "/endpoints") {
			lists++
		}
	}
	require.Equal(t, 1, lists, "one list serves all stacks of a pass")
}

// E9: after a start the first looks at a hundred repositories are spread.
func TestTheFirstLooksAfterAStartAreSpread(t *testing.T) {
	w := newStage(t)
	for i := range 100 {
		w.follow(fmt.Sprintf("repository%02d", i), nil)
	}
	seconds := map[time.Duration]int{}
	for _, f := range w.open().followers {
		d := f.spread()
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, 20*time.Second)
		require.Equal(t, d, f.spread(), "it is the name's own")
		seconds[d.Truncate(time.Second)]++
	}
	for at, n := range seconds {
		require.Less(t, n, 20, "%d of 100 at %s", n, at)
	}
}

// J1: two reconcilers with different repositories want one endpoint: the second is told
// whose it is, and in a hundred polls nothing is written in turns.
func TestTwoReconcilersNeverWriteOneEndpointInTurns(t *testing.T) {
	w := newStage(t)
	w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.repository("models").Drift = CorrectDrift
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	first := w.r

	w.config, w.journal = Config{}, newJournal()
	w.follow("others", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 7", 1)})
	w.repository("others").Drift = CorrectDrift
	second := w.open()
	require.NoError(t, second.Begin(t.Context()))
	n := len(w.calls)
	for range 100 {
		require.NoError(t, first.Once(t.Context()))
		require.NoError(t, second.Once(t.Context()))
		w.advance(time.Minute)
	}
	require.Empty(t, w.writes(n))
	s := w.stack("others", "prod")
	require.Contains(t, fmt.Sprint(s.Waits), first.instance+" models/prod", "the owner is named")
}

// J9: a commit and a hand edit at once are one plan, in which the two are told apart.
func TestACommitAndAHandEditAreToldApartInOnePlan(t *testing.T) {
	w, git, f := reviewed(t)
	internal := api.VisibilityInternal
	_, err := w.person("bob").UpdateEndpoint(t.Context(), w.endpoint("chat").ID, "visibility", api.UpdateEndpoint{Visibility: &internal})
	require.NoError(t, err)
	c := w.propose(git, f, "more", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 5", 1)})
	require.NoError(t, w.pass())
	require.Regexp(t, `(?i)yours`, c.comment())
	require.Regexp(t, `(?i)theirs|drift`, c.comment())
	require.Contains(t, c.comment(), "visibility")
	c.merge()
	w.advance(time.Minute)
	w.until("it is applied", 10*time.Minute, func() bool {
		return w.phase(InStep)() && slices.ContainsFunc(w.endpoint("chat").Deployments, func(d api.DeploymentSummary) bool { return *d.Autoscaling.MaxReplicas == 5 })
	})
	require.Equal(t, api.VisibilityInternal, w.endpoint("chat").Visibility, "theirs is told and left")
	require.Len(t, w.stack("models", "prod").Drift, 1)
}

// I7: the lease tells who holds it, where and since when, with its last heartbeat, and is
// not forced away while that is fresh.
func TestTheStatusNamesWhoHoldsTheLease(t *testing.T) {
	w := newStage(t)
	w.follow("models", nil)
	w.begin()
	since := w.now
	w.advance(10 * time.Second)
	require.NoError(t, w.pass())
	s, err := w.r.Status(t.Context())
	require.NoError(t, err)
	require.True(t, s.Holder.Mine)
	require.NotEmpty(t, s.Holder.Host)
	require.NotZero(t, s.Holder.PID)
	require.Equal(t, since, s.Holder.Since)
	require.Equal(t, w.now, s.Holder.Renewed)
	_, err = w.journal.ForceRelease(t.Context(), w.now.Add(5*time.Second), time.Minute)
	var held *journal.Held
	require.ErrorAs(t, err, &held)
	require.Equal(t, s.Holder.ID, held.By.Holder.ID)

	second, err := New(w.config, w.parts())
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	second.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, rec.Code)
	require.Contains(t, rec.Body.String(), "standing by: another reconciler writes here: ")
	require.Contains(t, rec.Body.String(), s.Holder.Host)
}

// E7: a process that is asked to stop between the making and the start of a rollout ends
// in order; the next one starts that same rollout.
func TestAStopBetweenMakingAndStartingStartsThatSameRollout(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.begin()
	w.until("it serves", 20*time.Minute, func() bool { return w.phase(InStep)() && w.serves("chat", "stable", 2) })
	git.push("main", "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	ctx, stop := context.WithCancel(t.Context())
	w.lost = func(req *http.Request) bool {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/rollouts") {
			stop()
		}
		return false
	}
	require.Error(t, w.r.Once(ctx))
	w.lost = nil
	require.NoError(t, w.r.End(t.Context()), "the lease is given back")
	made := w.all("chat")
	require.Len(t, made, 1)
	require.Equal(t, engineclient.StatePending, made[0].State)
	require.NoError(t, w.open().Begin(t.Context()), "nobody has to wait for the lease")
	require.NoError(t, w.pass())
	require.Equal(t, RollingOut, w.stack("models", "prod").Phase)
	require.Len(t, w.all("chat"), 1)
	require.NotEqual(t, engineclient.StatePending, w.all("chat")[0].State)
}
