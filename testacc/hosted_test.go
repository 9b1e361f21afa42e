package testacc

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// hosted stands in front of an engine and knows only the platform's own fields: no
// answer has a key "sluice", a request with one is refused, and there is no stream, no
// idempotency and no route that only ours has.
type hosted struct {
	URL string

	mu    sync.Mutex
	wrong []string // requests that the platform would not understand
}

func newHosted(t *testing.T, e *testEngine) *hosted {
	t.Helper()
	target, err := url.Parse(e.APIURL)
	require.NoError(t, err)
	h := &hosted{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = withoutExtensions
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.carry(proxy, w, r) }))
	t.Cleanup(s.Close)
	h.URL = s.URL
	return h
}

func (h *hosted) carry(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	stream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if bytes.Contains(body, []byte(`"sluice"`)) {
		h.mu.Lock()
		h.wrong = append(h.wrong, r.Method+" "+r.URL.Path+" "+string(body))
		h.mu.Unlock()
	}
	if stream || strings.Contains(r.URL.Path, "/keys") || bytes.Contains(body, []byte(`"sluice"`)) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"message":"no such route","error":{"message":"no such route","type":"invalid_request_error","param":null,"code":"NOT_FOUND"}}`)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Del("Idempotency-Key")
	proxy.ServeHTTP(w, r)
}

// withoutExtensions takes every key "sluice" out of an answer, however deep.
func withoutExtensions(a *http.Response) error {
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	raw, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	var v any
	from := json.NewDecoder(bytes.NewReader(raw))
	from.UseNumber()
	if from.Decode(&v) == nil {
		strip(v)
		if raw, err = json.Marshal(v); err != nil {
			return err
		}
	}
	a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	a.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return nil
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "sluice")
		for _, inner := range v {
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}

// workspaceOn is a workspace whose engine is the hosted one.
func (h *hosted) workspaceOn(t *testing.T, e *testEngine, hcl string) *workspace {
	t.Helper()
	w := newWorkspace(t, e, hcl)
	w.env = append(w.env, "SLUICE_ENGINE_URL="+h.URL)
	t.Cleanup(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		require.Empty(t, h.wrong, "nothing that only our engine understands is sent")
	})
	return w
}

const hostedGate = `
  metrics = [{
    name             = "router_latency"
    stat             = "AVG"
    regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 100 }
  }]`

// previewOf is the preview of a house's rollout.
const previewOf = `
data "sluice_rollout_preview" "test" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.candidate.id
  canary               = { steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }] }
}
`

// An engine that knows only the platform's own fields: plan, preview, create, start and
// wait, import, plan again, destroy.
func TestTerraformOnAHostedEngineFromPlanToDestroy(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	h := newHosted(t, e)
	base := realHouse(e.house(""))
	w := h.workspaceOn(t, e, base)
	w.apply(t)
	whole := realHouse(e.house(canaryBody)) + previewOf
	w.write(t, whole)
	raw := w.planJSON(t)
	require.NoError(t, keepsAll(t, raw), "what is not told is null, in the same shape")
	plan := w.plan(t, 2)
	require.Contains(t, plan, "canary 10 → 50 → 100 %")
	w.apply(t)
	r := e.newest(t)
	require.Equal(t, "COMPLETED", engineclient.Short(r.State))
	w.plan(t, 0)

	out, code := w.run(t, "state", "rm", "sluice_rollout.test")
	require.Zero(t, code, out)
	out, code = w.run(t, "import", "-no-color", "-input=false", "sluice_rollout.test", r.EndpointID+"/"+r.ID)
	require.Zero(t, code, out)
	show, _ := w.run(t, "show", "-no-color")
	require.Contains(t, show, r.ID)
	out, code = w.run(t, "destroy", "-auto-approve", "-no-color", "-input=false")
	require.Zero(t, code, out)
	all, err := engineclient.Collect(e.Client.Endpoints(t.Context(), engineclient.ListOptions{}))
	require.NoError(t, err)
	require.Empty(t, all)
}

// keepsAll checks the rollouts and previews of a plan against the documented schemas.
func keepsAll(t *testing.T, raw []byte) error {
	t.Helper()
	p := readPlan(t, raw)
	for _, c := range p.Changes {
		if c.Type == "sluice_rollout" {
			if err := keeps(t, planSchema(t, "rollout.schema.json"), c.Change.After); err != nil {
				return err
			}
		}
	}
	for _, r := range p.Prior.Values.Root.Resources {
		if r.Type == "sluice_rollout_preview" {
			if err := keeps(t, planSchema(t, "rollout_preview.schema.json"), r.Values); err != nil {
				return err
			}
		}
	}
	return nil
}

// A park there is a park here: told, untainted, waited for again, and resumed or
// canceled from HCL.
func TestTerraformOnAHostedEngineParksAndIsSteered(t *testing.T) {
	t.Parallel()
	e := startEngine(t, strings.Replace(fastEngine, "default_window: 1s", "default_window: 4s", 1))
	h := newHosted(t, e)
	allAnswered := e.traffic(t, 200) // in a window that leaves room for a machine that is busy
	slow := e.house(canaryBody + hostedGate)
	slow.candidate = "cr_slow"
	w := h.workspaceOn(t, e, realHouse(slow))
	require.Contains(t, w.apply(t), "is parked: METRIC_REGRESSION")
	r := e.newest(t)
	show, _ := w.run(t, "show", "-no-color")
	require.NotContains(t, show, "tainted")
	require.Contains(t, w.plan(t, 2), "0 to add, 1 to change, 0 to destroy")
	slow.rollout += "\n  desired_state = \"canceled\"\n  reason = \"too slow\""
	w.write(t, realHouse(slow))
	w.apply(t)
	w.plan(t, 0)
	require.Equal(t, r.ID, e.newest(t).ID)
	require.Equal(t, "CANCELED", engineclient.Short(e.newest(t).State))
	require.NoError(t, allAnswered(nil))
}

// What only our engine can do is refused at plan there, by the name of the capability.
func TestTerraformOnAHostedEngineRefusesExtensionsAtPlan(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	h := newHosted(t, e)
	w := h.workspaceOn(t, e, realHouse(e.house("")))
	w.apply(t)
	for capability, body := range map[string]string{
		"hold-source":     "hold_source_until_complete = true",
		"circuit-breaker": `circuit_breaker = { signed_by = "ada", rules = [{ name = "router_error_rate", threshold_check = { operator = "LT", value = 0.05 } }] }`,
	} {
		w.write(t, realHouse(e.house(canaryBody+"\n  "+body)))
		plan := w.plan(t, 1)
		require.Contains(t, plan, `needs an engine with the capability "`+capability+`"`)
		require.Contains(t, plan, h.URL)
	}
	require.Empty(t, e.newest(t).ID, "nothing was made")
}
