package testacc

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// wire is a network between the provider and the engine that can be cut.
type wire struct {
	URL string

	mu       sync.Mutex
	cutAfter func(*http.Request) bool // the answer of this request is lost, and with stays so is everything after it
	stays    bool
	before   bool // the request is lost too, not only its answer
	cut      bool
	posts    int // creates that reached the engine
}

func newWire(t *testing.T, e *testEngine) *wire {
	t.Helper()
	target, err := url.Parse(e.APIURL)
	require.NoError(t, err)
	w := &wire{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.carry(proxy, rw, r) }))
	t.Cleanup(s.Close)
	w.URL = s.URL
	return w
}

// carry passes a request on unless the wire is cut; what is lost is lost by closing
// the connection without an answer.
func (w *wire) carry(proxy http.Handler, rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	cut := w.cut
	lose, before := !cut && w.cutAfter != nil && w.cutAfter(r), w.before
	if lose {
		w.cut, w.cutAfter = w.stays, nil
	}
	if isCreate(r) && !cut && !(lose && before) {
		w.posts++
	}
	w.mu.Unlock()
	if cut {
		panic(http.ErrAbortHandler)
	}
	if !lose {
		proxy.ServeHTTP(rw, r)
		return
	}
	if !before {
		proxy.ServeHTTP(httptest.NewRecorder(), r)
	}
	panic(http.ErrAbortHandler)
}

func (w *wire) set(cutAfter func(*http.Request) bool, stays bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutAfter, w.stays, w.cut, w.before = cutAfter, stays, false, false
}

// cutAt loses a request before it reaches the engine, and everything after it.
func (w *wire) cutAt(at func(*http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutAfter, w.stays, w.cut, w.before = at, true, false, true
}

func isCreate(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/rollouts")
}

func isStart(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/start")
}

// The answer of the create is lost on the way: the retry finds the first try.
func TestTerraformLostAnswerOfACreateMakesOneRollout(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWire(t, e)
	var s seen
	h := e.house(`blue_green = {}`)
	h.url = w.URL
	w.set(isCreate, false)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{{
		Config: h.hcl(),
		Check: resource.ComposeTestCheckFunc(s.remember, attr("sluice_rollout.test", "state", "COMPLETED"), func(*terraform.State) error {
			all, err := engineclient.Collect(e.Client.Rollouts(t.Context(), s.endpoint, ""))
			require.Len(t, all, 1)
			require.GreaterOrEqual(t, w.posts, 2, "the create was sent again")
			return err
		}),
	}}})
}

// L3: everything fails right after the create was accepted, for longer than the
// retries last. The id is in the state, untainted; the next apply starts that very
// rollout and waits for it.
func TestTerraformEngineLostRightAfterTheCreateKeepsTheID(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWire(t, e)
	h := e.house(`blue_green = {}`)
	tf := newWorkspace(t, e, realHouse(h))
	tf.env = append(tf.env, "SLUICE_ENGINE_URL="+w.URL)
	w.cutAt(isStart)
	out := tf.apply(t)
	require.Contains(t, out, "is made but not started")
	w.set(nil, false)
	show, _ := tf.run(t, "show", "-no-color")
	require.Contains(t, show, "rol_")
	require.NotContains(t, show, "tainted")
	plan, code := tf.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Equal(t, 2, code, plan)
	require.Contains(t, plan, "0 to add, 1 to change, 0 to destroy")
	tf.apply(t)
	require.Equal(t, 1, w.posts)
	show, _ = tf.run(t, "show", "-no-color")
	require.Contains(t, show, `"COMPLETED"`)
}

// The engine restarts while an apply waits: the wait goes on with the new one.
func TestTerraformApplyOutlivesALostEngine(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWire(t, e)
	var s seen
	h := e.house(`canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "2s" }`)
	h.url = w.URL
	polls := 0
	w.set(func(r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/rollouts/rol_") {
			polls++
		}
		return polls == 3
	}, true)
	go func() { // the engine is back a while after it was lost
		for {
			w.mu.Lock()
			lost := w.cut
			w.mu.Unlock()
			if lost {
				break
			}
			select {
			case <-t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		select {
		case <-t.Context().Done():
		case <-time.After(2 * time.Second):
			w.set(nil, false)
		}
	}()
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{{
		Config:           h.hcl(),
		ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		Check:            resource.ComposeTestCheckFunc(s.remember, attr("sluice_rollout.test", "state", "COMPLETED")),
	}}})
}

// One 404 from something on the way, or from an engine that is coming up, does not
// drop a resource from the state: the next apply would make a second one.
func TestTerraformDoesNotBelieveASingle404(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	target, err := url.Parse(e.APIURL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	var mu sync.Mutex
	lies := map[string]bool{}
	lying := false
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		lie := lying && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/endpoints/") && !lies[r.URL.Path]
		lies[r.URL.Path] = true
		mu.Unlock()
		if !lie {
			proxy.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusNotFound)
		_, _ = io.Copy(rw, bytes.NewReader([]byte(`{"message":"no such thing","error":{"message":"no such thing","type":"not_found_error","param":null,"code":"NOT_FOUND"}}`)))
	}))
	t.Cleanup(s.Close)
	h := e.house(`blue_green = {}`)
	h.url = s.URL
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: h.hcl()},
		{
			PreConfig: func() {
				mu.Lock()
				defer mu.Unlock()
				lying, lies = true, map[string]bool{}
			},
			Config: h.hcl(), ConfigPlanChecks: onlyEmpty(),
		},
	}})
}
