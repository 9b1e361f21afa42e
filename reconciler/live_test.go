package reconciler

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/serve"
)

const quickEngine = `
project: {id: proj_test, slug: acme}
fleet: {driver: simulated}
hardware:
  - {id: 1xtest, gpu_type: none, price_cents_per_hour: 249, capacity: 40}
configs:
  - {id: cr_a, models: [demo/a], hardware: 1xtest, simulated: {cold_start: 20ms, latency: 5ms}}
  - {id: cr_b, models: [demo/b], hardware: 1xtest, simulated: {cold_start: 20ms, latency: 5ms}}
meter: {slot: 50ms}
timings: {propagation: 50ms, ingestion_lag: 100ms, default_window: 500ms, minimum_window: 200ms, default_interval: 100ms, stabilization: 50ms}
`

// world is a real engine, and a client whose calls are counted.
type world struct {
	*engineclient.Client
	calls *calls
}

// calls notes the requests that a client makes.
type calls struct {
	mu   sync.Mutex
	made []string
}

func (c *calls) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.made = append(c.made, r.Method+" "+r.URL.Path)
	c.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// take returns what was noted and forgets it.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.made
	c.made = nil
	return out
}

func liveWorld(t *testing.T) world {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "engine.yaml")
	require.NoError(t, os.WriteFile(path, []byte(quickEngine), 0o600))
	file, err := serve.ReadFile(path)
	require.NoError(t, err)
	s, err := serve.Start(t.Context(), serve.Options{Dir: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", GatewayListen: "127.0.0.1:0", File: file, Version: "test"})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	})
	key, err := os.ReadFile(filepath.Join(dir, "data", "first-key"))
	require.NoError(t, err)
	w := world{calls: &calls{}}
	w.Client, err = engineclient.New(engineclient.Config{BaseURL: s.APIURL, APIKey: strings.TrimSpace(string(key)), Transport: w.calls})
	require.NoError(t, err)
	return w
}

func declared(t *testing.T, hcl string) declaration.Set {
	t.Helper()
	set, found := declaration.LoadFiles([]declaration.File{{Name: "main.tf", Bytes: []byte(hcl)}}, declaration.Options{})
	require.NoError(t, found.Err())
	return set
}

// house is the HCL of an endpoint with two deployments.
func house(name string) string {
	return fmt.Sprintf(`
resource "sluice_endpoint" %[1]q { name = %[1]q }
resource "sluice_deployment" "%[1]s_a" {
  endpoint_id            = sluice_endpoint.%[1]s.id
  name                   = "a"
  model                  = "demo/a"
  autoscaling            = { min_replicas = 1, max_replicas = 1 }
  initial_traffic_weight = 1
}
resource "sluice_deployment" "%[1]s_b" {
  endpoint_id = sluice_endpoint.%[1]s.id
  name        = "b"
  model       = "demo/b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`, name)
}

func shift(name, interval string) string {
	return fmt.Sprintf(`
resource "sluice_rollout" %[1]q {
  endpoint_id          = sluice_endpoint.%[1]s.id
  source_deployment_id = sluice_deployment.%[1]s_a.id
  target_deployment_id = sluice_deployment.%[1]s_b.id
  canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = %[2]q }
}
`, name, interval)
}

// plan compares a set with what stands now.
func (w world) plan(t *testing.T, set declaration.Set, bound planning.Bindings) planning.Changes {
	t.Helper()
	standing, err := ReadStanding(t.Context(), w.Client, set, bound)
	require.NoError(t, err)
	changes, err := planning.Compare(set, standing, bound)
	require.NoError(t, err)
	return changes
}

// settle does what a set asks for until nothing is left, waiting only for replicas.
func (w world) settle(t *testing.T, set declaration.Set) planning.Bindings {
	t.Helper()
	ids := planning.Bindings{}
	for range 20 {
		pending := w.plan(t, set, nil).Pending()
		if len(pending) == 0 {
			return w.plan(t, set, nil).Bindings()
		}
		for _, c := range pending {
			done := w.do(t, c, ids)
			ids[c.Address] = done.ID
		}
	}
	t.Fatal("it does not settle")
	return nil
}

func (w world) do(t *testing.T, c planning.Change, ids planning.Bindings) Done {
	t.Helper()
	done, err := Do(t.Context(), w.Client, c, ids, By{Origin: "test"})
	require.NoError(t, err, "%s of %s", c.Action, c.Address)
	if done.Deployment != nil {
		require.Eventually(t, func() bool {
			d, err := w.GetDeployment(t.Context(), done.EndpointID, done.ID)
			return err == nil && Settled(d)
		}, 20*time.Second, 10*time.Millisecond)
	}
	return done
}

func (w world) await(t *testing.T, endpoint, id, state string) api.Rollout {
	t.Helper()
	var r api.Rollout
	require.Eventually(t, func() bool {
		var err error
		r, err = w.GetRollout(t.Context(), endpoint, id)
		return err == nil && r.State == state
	}, 30*time.Second, 10*time.Millisecond, "last %s", r.State)
	return r
}

// A pass over many endpoints that have not changed costs the pages of the list.
func TestAPassWithoutChangesCostsTheListAlone(t *testing.T) {
	w := liveWorld(t)
	var sets []declaration.Set
	for i := range 12 {
		set := declared(t, house(fmt.Sprintf("chat%d", i)))
		w.settle(t, set)
		sets = append(sets, set)
	}
	l := NewLive(w.Client)
	pass := func() []string {
		w.calls.take()
		require.NoError(t, l.Refresh(t.Context()))
		for _, set := range sets {
			standing, err := l.Standing(t.Context(), set, nil)
			require.NoError(t, err)
			require.Len(t, standing.Endpoints, 1)
			changes, err := planning.Compare(set, standing, nil)
			require.NoError(t, err)
			require.Empty(t, changes.Pending())
		}
		return w.calls.take()
	}
	require.Len(t, pass(), 1+2*len(sets), "the first one reads all")
	require.Len(t, pass(), 1, "the second one the list: E9")
}

// What is kept is read again as soon as something that a plan looks at has changed: each
// thing that may happen to an endpoint is done, and what was kept must show it.
func TestWhatIsKeptIsNeverBehindTheEngine(t *testing.T) {
	w := liveWorld(t)
	set := declared(t, house("chat")+shift("chat", "600s"))
	base := declared(t, house("chat"))
	ids := w.settle(t, base)
	l := NewLive(w.Client)
	endpoint := ids[set.Endpoints[0].Address]
	check := func(after string) planning.Standing {
		t.Helper()
		require.NoError(t, l.Refresh(t.Context()))
		kept, err := l.Standing(t.Context(), set, nil)
		require.NoError(t, err)
		fresh, err := ReadStanding(t.Context(), w.Client, set, nil)
		require.NoError(t, err)
		require.Equal(t, digestible(fresh), digestible(kept), "after %s", after)
		return kept
	}
	check("nothing")
	a := ids[set.Deployments[0].Address]
	three := 3
	_, err := w.UpdateDeployment(t.Context(), endpoint, a, boundsMask, api.UpdateDeployment{Autoscaling: &api.Autoscaling{MinReplicas: &three, MaxReplicas: &three}})
	require.NoError(t, err)
	check("an edit of bounds")
	change, ok := w.plan(t, set, nil).Find("sluice_rollout.chat")
	require.True(t, ok)
	made := w.do(t, change, ids)
	check("a create")
	started, _ := w.plan(t, set, nil).Find("sluice_rollout.chat")
	require.Equal(t, planning.Start, started.Action)
	w.do(t, started, ids)
	check("a start")
	w.await(t, endpoint, made.ID, engineclient.StateStabilizing)
	check("a step")
	_, err = w.PauseRollout(t.Context(), endpoint, made.ID, api.Control{Reason: "test"})
	require.NoError(t, err)
	w.await(t, endpoint, made.ID, engineclient.StatePaused)
	check("a pause")
	_, err = w.CancelRollout(t.Context(), endpoint, made.ID, api.Control{Reason: "test"})
	require.NoError(t, err)
	w.await(t, endpoint, made.ID, engineclient.StateCanceled)
	check("a cancel")
	zero := 0
	_, err = w.CreateDeployment(t.Context(), endpoint, api.CreateDeployment{Name: "c", Model: "demo/b", Autoscaling: api.Autoscaling{MinReplicas: &zero, MaxReplicas: &zero}}, "")
	require.NoError(t, err)
	check("a new deployment")
	require.NoError(t, w.DeleteRollout(t.Context(), endpoint, made.ID, ""))
	l.now = func() time.Time { return time.Now().Add(DefaultKeepFor) }
	require.Empty(t, check("the deletion of a record, once what is kept is old").Endpoints[0].Rollouts)
}

// digestible is what a plan looks at of what stands.
func digestible(s planning.Standing) any {
	type seen struct {
		Split       []api.TrafficWeight
		Deployments []string
		Rollouts    []string
	}
	var out []seen
	for _, e := range s.Endpoints {
		one := seen{Split: e.TrafficSplit}
		for _, d := range e.All {
			one.Deployments = append(one.Deployments, fmt.Sprintf("%s %s %d-%d", d.ID, d.Model, *d.Autoscaling.MinReplicas, *d.Autoscaling.MaxReplicas))
		}
		for _, r := range e.Rollouts {
			one.Rollouts = append(one.Rollouts, r.ID+" "+r.State)
		}
		out = append(out, one)
	}
	return out
}
