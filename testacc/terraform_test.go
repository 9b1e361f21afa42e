package testacc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/probe"
	"github.com/sluice-dev/terraform-provider-sluice/provider"
)

var inProcess = map[string]func() (tfprotov6.ProviderServer, error){
	"sluice": providerserver.NewProtocol6WithError(provider.New("test")()),
}

// house is the configuration that the tests share: an endpoint with a deployment
// that serves and a stopped candidate, and a rollout between them.
type house struct {
	url, key  string
	candidate string // serving config of the target
	rollout   string // body of the rollout; empty for none
	extra     string
}

const averageGate = `
  metrics = [{
    name   = "router_latency"
    stat   = "AVG"
    window = "1s"
    regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 100 }
  }]`

const canaryBody = `
  canary = { steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }] }`

func (h house) hcl() string {
	if h.candidate == "" {
		h.candidate = "cr_good"
	}
	out := fmt.Sprintf(`
provider "sluice" {
  engine_url = %q
  api_key    = %q
}
resource "sluice_endpoint" "chat" {
  name = "chat"
}
resource "sluice_deployment" "stable" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "stable"
  model                  = "demo/stable"
  config                 = "cr_stable"
  autoscaling            = { min_replicas = 1, max_replicas = 1 }
  initial_traffic_weight = 1
}
resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "candidate"
  model       = "demo/candidate"
  config      = %q
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`, h.url, h.key, h.candidate)
	if h.rollout != "" {
		out += fmt.Sprintf(`
resource "sluice_rollout" "test" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  %s
}
`, h.rollout)
	}
	return out + h.extra
}

// seen keeps what the state of a test's resources says between its steps.
type seen struct{ endpoint, rollout string }

func (s *seen) remember(state *terraform.State) error {
	for name, to := range map[string]*string{"sluice_endpoint.chat": &s.endpoint, "sluice_rollout.test": &s.rollout} {
		r, ok := state.RootModule().Resources[name]
		if !ok {
			return fmt.Errorf("%s is not in the state", name)
		}
		if r.Primary.Tainted {
			return fmt.Errorf("%s is tainted", name)
		}
		*to = r.Primary.ID
	}
	return nil
}

// stays checks that the rollout is still the one remembered.
func (s *seen) stays(state *terraform.State) error {
	before := s.rollout
	if err := s.remember(state); err != nil {
		return err
	}
	if before != s.rollout {
		return fmt.Errorf("rollout %s was replaced by %s", before, s.rollout)
	}
	return nil
}

func (e *testEngine) house(rollout string) house {
	return house{url: e.APIURL, key: e.Key, rollout: rollout}
}

// traffic sends steady requests once the endpoint serves. The check that it returns
// ends them, before the destroy, and fails for any answer that is not a 200.
func (e *testEngine) traffic(t *testing.T, rps float64) resource.TestCheckFunc {
	t.Helper()
	return e.trafficTo(t, "acme/chat", rps)
}

func (e *testEngine) trafficTo(t *testing.T, model string, rps float64) resource.TestCheckFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var tally probe.Tally
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if e.untilServed(ctx, model) {
			tally, err = probe.Run(ctx, probe.Config{BaseURL: e.GatewayURL + "/v1", Model: model, RPS: rps})
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func(*terraform.State) error {
		cancel()
		<-done
		if err == nil && (tally.Requests == 0 || tally.Non200() > 0) {
			err = errors.New(tally.String())
		}
		return err
	}
}

// untilServed waits until the gateway answers for the endpoint.
func (e *testEngine) untilServed(ctx context.Context, model string) bool {
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-every.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.GatewayURL+"/v1/chat/completions", strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			return false
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return true
		}
	}
}

// reaches waits until a rollout is in a state.
func (e *testEngine) reaches(t *testing.T, endpoint, id string, states ...string) api.Rollout {
	t.Helper()
	var last api.Rollout
	require.Eventually(t, func() bool {
		r, err := e.Client.GetRollout(t.Context(), endpoint, id)
		if err != nil {
			return false
		}
		last = r
		for _, s := range states {
			if engineclient.Short(r.State) == s {
				return true
			}
		}
		return false
	}, 20*time.Second, 20*time.Millisecond, "rollout %s did not reach %v", id, states)
	return last
}

func attr(name, key, value string) resource.TestCheckFunc {
	return resource.TestCheckResourceAttr(name, key, value)
}

func TestTerraformCompletesImportsAndPlansNothingAfterwards(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	h := e.house(canaryBody + averageGate)
	h.extra = `
data "sluice_rollout_preview" "test" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  canary               = { steps = [{ traffic = 10 }, { traffic = 100 }] }
}
data "sluice_rollout_gate" "test" {
  endpoint_id = sluice_rollout.test.endpoint_id
  rollout_id  = sluice_rollout.test.id
  depends_on  = [sluice_rollout.test]
}`
	// The same rollout spelled another way: full enums, other durations.
	respelled := h
	respelled.rollout = canaryBody + `
  metrics = [{
    name   = "router_latency"
    stat   = "METRIC_STAT_TYPE_AVG"
    window = "1000ms"
    regression_check = { direction = "REGRESSION_DIRECTION_HIGHER_IS_WORSE", max_regression_percent = 100 }
  }]`
	withoutSource := strings.Replace(h.hcl(), "  source_deployment_id = sluice_deployment.stable.id\n  target_deployment_id = sluice_deployment.candidate.id\n  \n", "  target_deployment_id = sluice_deployment.candidate.id\n", 1)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{
			Config: h.hcl(),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("sluice_rollout.test", plancheck.ResourceActionCreate),
				knownAtPlan{"sluice_rollout.test", []string{"journey", "facts", "findings"}},
			}, PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check: resource.ComposeTestCheckFunc(
				s.remember,
				attr("sluice_rollout.test", "state", "COMPLETED"),
				attr("sluice_rollout.test", "current_traffic_percent", "100"),
				attr("sluice_rollout.test", "journey.#", "3"),
				attr("sluice_rollout.test", "facts.first_step_percent", "10"),
				attr("sluice_rollout.test", "journey.1.gated", "true"),
				attr("sluice_rollout.test", "journey.2.gated", "false"), // a regression has no source there
				resource.TestCheckNoResourceAttr("sluice_rollout.test", "journey.0.scale_up"),
				attr("sluice_rollout.test", "journey.0.wait_seconds", "1.2"),
				attr("sluice_rollout.test", "in_effect.wait_seconds", "1.2"),
				attr("data.sluice_rollout_preview.test", "feasible", "true"),
				attr("data.sluice_rollout_preview.test", "journey.1.target_replicas", "1"),
				attr("data.sluice_rollout_preview.test", "hardware.price_cents_per_hour", "249"),
				attr("data.sluice_rollout_gate.test", "state", "COMPLETED"),
				attr("sluice_deployment.candidate", "autoscaling.min_replicas", "0"),
			),
		},
		{Config: respelled.hcl(), ConfigPlanChecks: onlyEmpty()},
		{Config: withoutSource, ConfigPlanChecks: onlyEmpty()},
		{
			ResourceName: "sluice_rollout.test", ImportState: true, ImportStateVerify: true,
			ImportStateIdFunc: func(*terraform.State) (string, error) { return s.endpoint + "/" + s.rollout, nil },
		},
		{
			Config: h.hcl(), ResourceName: "sluice_rollout.test", ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportStateIdFunc: func(*terraform.State) (string, error) { return s.endpoint + "/" + s.rollout, nil },
		},
		{ResourceName: "sluice_endpoint.chat", ImportState: true, ImportStateVerify: true},
		{
			ResourceName: "sluice_deployment.candidate", ImportState: true, ImportStateVerify: true,
			// The rollout has raised the bounds and moved the split; asked for is what was asked for.
			ImportStateVerifyIgnore: []string{"autoscaling", "initial_traffic_weight"},
			ImportStateIdFunc: func(state *terraform.State) (string, error) {
				return s.endpoint + "/" + state.RootModule().Resources["sluice_deployment.candidate"].Primary.ID, nil
			},
		},
	}})
	_, err := e.Client.GetEndpoint(t.Context(), s.endpoint)
	require.True(t, engineclient.IsNotFound(err), "the destroy took everything away: %v", err)
}

func onlyEmpty() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

// knownAtPlan checks that attributes are wholly known in the plan.
type knownAtPlan struct {
	address    string
	attributes []string
}

func (k knownAtPlan) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, rc := range req.Plan.ResourceChanges {
		if rc.Address != k.address {
			continue
		}
		unknown, _ := rc.Change.AfterUnknown.(map[string]any)
		for _, a := range k.attributes {
			b, err := json.Marshal(unknown[a])
			if err != nil || bytes.Contains(b, []byte("true")) {
				resp.Error = errors.Join(resp.Error, fmt.Errorf("%s.%s is not known at plan: %s", k.address, a, b))
			}
		}
	}
}

// A parked apply ends with a warning, saved and untainted; the next plan is a
// resume; what a person decides meanwhile is attached to and ends it.
func TestTerraformParksUntaintedAndASecondApplyAttaches(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	allAnswered := e.traffic(t, 60)
	var s seen
	h := e.house(canaryBody + averageGate)
	h.candidate = "cr_slow"
	gated := h
	gated.extra = `
data "sluice_rollout_gate" "test" {
  endpoint_id = sluice_rollout.test.endpoint_id
  rollout_id  = sluice_rollout.test.id
  depends_on  = [sluice_rollout.test]
}`
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{
			Config: h.hcl(), ExpectNonEmptyPlan: true,
			Check: resource.ComposeTestCheckFunc(
				s.remember,
				attr("sluice_rollout.test", "state", "SYSTEM_PAUSED"),
				attr("sluice_rollout.test", "condition.category", "METRIC_REGRESSION"),
				attr("sluice_rollout.test", "condition.metrics.0.verdict", "BREACHED"),
				attr("sluice_rollout.test", "current_traffic_percent", "10"),
				attr("sluice_rollout.test", "current_step", "1"),
			),
		},
		{Config: gated.hcl(), ExpectError: regexp.MustCompile(`(?s)is SYSTEM_PAUSED.*Three ways on`)},
		{
			PreConfig: func() {
				_, err := e.Client.PromoteRollout(t.Context(), s.endpoint, s.rollout, api.Control{})
				require.NoError(t, err)
			},
			Config: h.hcl(),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("sluice_rollout.test", plancheck.ResourceActionUpdate),
			}, PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check: resource.ComposeTestCheckFunc(s.stays, attr("sluice_rollout.test", "state", "COMPLETED"), allAnswered),
		},
	}})
}

// A person's cancel is a decision about one spec: it is not started again by
// itself; another spec is, as another rollout.
func TestTerraformLeavesACanceledRolloutAloneUntilTheSpecChanges(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	slow := e.house(`canary = { steps = [{ traffic = 10 }, { traffic = 100 }], step_interval = "1h" }
  wait = false`)
	changed := e.house(`blue_green = {}`)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: slow.hcl(), Check: s.remember},
		// Under way, a changed spec is refused at plan, with the holder's name.
		{
			PreConfig: func() { e.reaches(t, s.endpoint, s.rollout, "STABILIZING") },
			Config:    changed.hcl(), ExpectError: regexp.MustCompile(`(?s)is under way.*STABILIZING`),
		},
		// So is a destroy, immediately, and nothing is canceled on the way.
		{Config: slow.hcl(), Destroy: true, ExpectError: regexp.MustCompile(`(?s)is under way and is\s+not\s+destroyed`)},
		{
			PreConfig: func() {
				require.Equal(t, "STABILIZING", engineclient.Short(e.reaches(t, s.endpoint, s.rollout, "STABILIZING").State))
				_, err := e.Client.CancelRollout(t.Context(), s.endpoint, s.rollout, api.Control{Reason: "not today"})
				require.NoError(t, err)
				e.reaches(t, s.endpoint, s.rollout, "CANCELED")
			},
			Config:           strings.Replace(slow.hcl(), "wait = false", "", 1),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check:            resource.ComposeTestCheckFunc(s.stays, attr("sluice_rollout.test", "state", "CANCELED")),
		},
		{
			Config: changed.hcl(),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("sluice_rollout.test", plancheck.ResourceActionDestroyBeforeCreate),
			}, PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			Check: attr("sluice_rollout.test", "state", "COMPLETED"),
		},
	}})
}

// L1: a wait that times out leaves the id in the state, untainted; the next apply
// goes on waiting and nothing is destroyed. L5: what moves meanwhile is no
// inconsistency. The destroy at the end cancels, since it was told to.
func TestTerraformTimeoutGoesOnWaitingNextTime(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	h := e.house(`canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "2s" }
  destroy_behavior = "cancel"
  timeouts         = { create = "500ms", update = "500ms" }`)
	patient := e.house(`canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "2s" }
  destroy_behavior = "cancel"`)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: h.hcl(), ExpectNonEmptyPlan: true, Check: s.remember},
		{Config: patient.hcl(), Check: resource.ComposeTestCheckFunc(s.stays, attr("sluice_rollout.test", "state", "COMPLETED")),
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}},
	}})
}

// Another rollout on the endpoint is named before anything is accepted. A start
// that the engine refuses leaves nothing behind.
func TestTerraformIsRefusedByAnotherRolloutAndByAStartThatCannotBe(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var endpoint string
	base := e.house("")
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: base.hcl(), Check: func(state *terraform.State) error {
			ep := state.RootModule().Resources["sluice_endpoint.chat"].Primary.ID
			endpoint = ep
			stable, candidate := state.RootModule().Resources["sluice_deployment.stable"].Primary.ID, state.RootModule().Resources["sluice_deployment.candidate"].Primary.ID
			r, err := e.Client.CreateRollout(t.Context(), ep, api.RolloutSpec{SourceDeploymentID: stable, TargetDeploymentID: candidate, Rolling: &api.Rolling{}}, "")
			t.Logf("made %s", r.ID)
			return err
		}},
		{Config: e.house(`blue_green = {}`).hcl(), ExpectError: regexp.MustCompile(`(?s)held by (another )?rollout.*rol_`)},
		// L9: so is what would pull a side away from under it.
		{Config: base.hcl(), Destroy: true, ExpectError: regexp.MustCompile(`(?s)Cannot\s+delete\s+deployment.*held\s+by\s+rollout\s+rol_`)},
		{
			PreConfig: func() {
				r, found, err := e.Client.ActiveRollout(t.Context(), endpoint)
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, "PENDING", engineclient.Short(r.State), "nothing was touched")
				require.NoError(t, e.Client.DeleteRollout(t.Context(), endpoint, r.ID, ""))
			},
			// A rollout to the side that serves everything: refused at plan.
			Config: strings.NewReplacer("source_deployment_id = sluice_deployment.stable.id", "source_deployment_id = sluice_deployment.candidate.id",
				"target_deployment_id = sluice_deployment.candidate.id", "target_deployment_id = sluice_deployment.stable.id").Replace(e.house(`blue_green = {}`).hcl()),
			ExpectError: regexp.MustCompile(`(?s)the\s+target\s+serves\s+alone`),
		},
		{Config: base.hcl(), Check: func(*terraform.State) error {
			_, found, err := e.Client.ActiveRollout(t.Context(), endpoint)
			if found {
				return errors.New("a refused rollout holds the endpoint")
			}
			return err
		}},
	}})
}

// An apply that is interrupted loses nothing: the rollout goes on, is saved and not
// tainted, and the next apply waits for the same one.
func TestInterruptedApplyLosesNothing(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house(slowRollout)))
	cmd, out := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
	require.NoError(t, cmd.Start())
	r := e.activeRollout(t)
	e.reaches(t, r.EndpointID, r.ID, "STABILIZING")
	signaled := time.Now()
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	err := cmd.Wait()
	require.Error(t, err, "an interrupted run is not green: %s", out)
	require.Less(t, time.Since(signaled), 3*time.Second)
	require.Contains(t, out.String(), "Interrupted: rollout "+r.ID+" goes on")

	show, _ := w.run(t, "show", "-no-color")
	require.Contains(t, show, r.ID)
	require.NotContains(t, show, "tainted")
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Equal(t, 2, code, plan)
	require.Contains(t, plan, "0 to add, 1 to change, 0 to destroy")
	w.apply(t)
	require.Equal(t, "COMPLETED", engineclient.Short(e.reaches(t, r.EndpointID, r.ID, "COMPLETED").State))
	plan, code = w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Equal(t, 0, code, plan)
}

// A killed apply loses Terraform's state but not the rollout: the next create finds
// the open rollout of the same spec and adopts it.
func TestKilledApplyIsAdoptedByTheNext(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house("")))
	w.apply(t)
	w.write(t, realHouse(e.house(slowRollout)))
	cmd, out := w.command(t.Context(), "apply", "-auto-approve", "-no-color", "-input=false")
	require.NoError(t, cmd.Start())
	r := e.activeRollout(t)
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	require.Error(t, cmd.Wait(), out)
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, ".terraform.tfstate.lock.info")))
	plan, code := w.run(t, "plan", "-no-color", "-lock=false", "-detailed-exitcode")
	require.Equal(t, 2, code, plan)
	require.Contains(t, plan, "1 to add")
	w.apply(t, "-lock=false")
	all, err := engineclient.Collect(e.Client.Rollouts(t.Context(), r.EndpointID, ""))
	require.NoError(t, err)
	require.Len(t, all, 1, "no second rollout was started")
	require.Equal(t, "COMPLETED", engineclient.Short(all[0].State))
}
