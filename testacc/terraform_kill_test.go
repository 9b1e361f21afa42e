package testacc

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// victim is what a SIGKILL hits.
type victim string

const (
	both          victim = "terraform and its provider"
	providerOnly  victim = "the provider"
	terraformOnly victim = "terraform"
)

// moment is when it hits: at a call of the apply, before it reaches the engine or once
// it was carried out, or an instant after the start.
type moment struct {
	call  int
	after bool // the engine has carried the call out
	at    time.Duration
}

func (m moment) String() string {
	switch {
	case m.call == 0:
		return m.at.String()
	case m.after:
		return fmt.Sprintf("after call %d", m.call)
	}
	return fmt.Sprintf("before call %d", m.call)
}

type killPoint struct {
	victim victim
	moment moment
}

// killPoints are n points of an apply: every one of its first calls, before and after,
// and instants drawn at random, with the victims in turn.
func killPoints(n int) []killPoint {
	victims := []victim{both, providerOnly, terraformOnly}
	var out []killPoint
	// An apply of this configuration makes some thirty calls, half of them in the wait.
	calls := n * 4 / 5
	for i := range calls {
		m := moment{call: 1 + i*26/calls, after: i%2 == 1}
		out = append(out, killPoint{victims[i%len(victims)], m})
	}
	for len(out) < n {
		out = append(out, killPoint{victims[len(out)%len(victims)], moment{at: 200*time.Millisecond + rand.N(2*time.Second)}})
	}
	return out
}

// The provider or terraform is killed at many points of an apply. The next apply finds
// what the killed one made, attaches and ends; there are never two rollouts. All fifty
// points: make testacc-kill.
func TestTerraformKilledAtManyPointsOfAnApply(t *testing.T) {
	t.Parallel()
	points := 12
	if n, err := strconv.Atoi(os.Getenv("SLUICE_KILL_POINTS")); err == nil {
		points = n
	}
	e := startEngine(t, wideEngine)
	began := time.Now()
	var met, made atomic.Int32
	room := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, at := range killPoints(points) {
		endpoint, source, target := e.pair(t, fmt.Sprintf("killed-%d", i))
		w := newWorkspace(t, e, required+`provider "sluice" {}
resource "sluice_rollout" "test" {
  endpoint_id          = "`+endpoint+`"
  source_deployment_id = "`+source+`"
  target_deployment_id = "`+target+`"
  canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "600ms" }
}
`)
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(fmt.Sprintf("%s killed %s", at.victim, at.moment), func(t *testing.T) {
				hit, left := e.killedAt(t, w, at, endpoint)
				met.Add(hit)
				made.Add(left)
				out, code := w.run(t, "apply", "-auto-approve", "-no-color", "-input=false", "-lock=false")
				require.Zero(t, code, out)
				all, err := engineclient.Collect(e.Client.Rollouts(t.Context(), endpoint, ""))
				require.NoError(t, err)
				require.Len(t, all, 1, "never two rollouts")
				require.Equal(t, "COMPLETED", engineclient.Short(all[0].State))
				show, _ := w.run(t, "show", "-no-color")
				require.Contains(t, show, all[0].ID)
				require.NotContains(t, show, "tainted")
			})
		})
	}
	wg.Wait()
	t.Logf("measured: %d points in %s; %d met a running apply, in %d of them the killed apply had made its rollout already, and the next one attached to it", points, time.Since(began).Round(time.Second), met.Load(), made.Load())
	require.Greater(t, int(met.Load()), points*2/3)
	require.Positive(t, made.Load())
}

// killedAt runs an apply that is killed at a point. hit is 1 when it still ran then,
// left is 1 when it had made a rollout.
func (e *testEngine) killedAt(t *testing.T, w *workspace, at killPoint, endpoint string) (hit, left int32) {
	t.Helper()
	up, err := url.Parse(e.APIURL)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(up)
	cmd, _ := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
	var calls, struck atomic.Int32
	var once sync.Once
	started := make(chan struct{})
	kill := func() {
		once.Do(func() {
			<-started // the first call may come before Start has returned
			if e.strike(cmd.Process.Pid, at.victim) == nil {
				struck.Store(1)
			}
		})
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mine := int(calls.Add(1)) == at.moment.call && at.moment.call > 0
		if mine && !at.moment.after {
			kill()
			panic(http.ErrAbortHandler)
		}
		if mine && r.URL.Query().Get("follow") != "true" { // a stream has no end to wait for
			forward.ServeHTTP(httptest.NewRecorder(), r)
			kill()
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(rw, r)
	}))
	defer proxy.Close()
	cmd.Env = append(cmd.Env, "SLUICE_ENGINE_URL="+proxy.URL)
	require.NoError(t, cmd.Start())
	close(started)
	if at.moment.call == 0 {
		defer time.AfterFunc(at.moment.at, kill).Stop()
	}
	_ = cmd.Wait()                                      // killed, or told that its provider is gone, or done
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // a provider that outlived its terraform
	proxy.Close()                                       // the call that kills has ended, too
	_, found, err := e.Client.ActiveRollout(t.Context(), endpoint)
	require.NoError(t, err)
	if found {
		left = 1
	}
	return struck.Load(), left
}

// strike kills. The provider is a child of terraform.
func (e *testEngine) strike(terraform int, v victim) error {
	switch v {
	case both:
		return syscall.Kill(-terraform, syscall.SIGKILL)
	case terraformOnly:
		return syscall.Kill(terraform, syscall.SIGKILL)
	case providerOnly:
	}
	p, err := process.NewProcess(int32(terraform)) //nolint:gosec // a process id
	if err != nil {
		return err
	}
	children, err := p.Children()
	if err != nil {
		return err
	}
	for _, c := range children {
		if line, _ := c.Cmdline(); strings.Contains(line, "terraform-provider-sluice") {
			err = c.Kill()
		}
	}
	return err
}
