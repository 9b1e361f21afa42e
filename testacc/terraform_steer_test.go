package testacc

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// happened counts a rollout's events of a type.
func (e *testEngine) happened(t *testing.T, endpoint, id, kind string) int {
	t.Helper()
	rows, err := engineclient.Collect(e.Client.Events(t.Context(), endpoint, engineclient.EventQuery{SubjectID: id, Types: []string{kind}}))
	require.NoError(t, err)
	return len(rows)
}

// A person steers a live rollout from HCL: hold, go on, jump to the end, cancel. Each
// control is sent once, and what the state does not allow is refused at plan.
func TestTerraformSteersALiveRollout(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var s seen
	long := func(extra string) string {
		return e.house(`canary = { steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }], step_interval = "1h" }
  wait = false
  ` + extra).hcl()
	}
	stays := resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
	once := func(kind string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if n := e.happened(t, s.endpoint, s.rollout, kind); n != 1 {
				return fmt.Errorf("%s happened %d times", kind, n)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: long(`desired_state = "paused"`), ExpectError: regexp.MustCompile(`(?s)A new rollout starts with desired_state`)},
		{Config: long(""), Check: s.remember},
		{
			PreConfig: func() { e.reaches(t, s.endpoint, s.rollout, "STABILIZING") },
			Config:    long("desired_state = \"paused\"\n  reason = \"lunch\""), ConfigPlanChecks: stays,
			Check: resource.ComposeTestCheckFunc(s.stays, attr("sluice_rollout.test", "state", "PAUSED"), attr("sluice_rollout.test", "current_traffic_percent", "10"), once("rollout.paused")),
		},
		{Config: long("desired_state = \"paused\"\n  resume_token = \"now\""), ExpectError: regexp.MustCompile(`contradict`)},
		{Config: long(""), Check: resource.ComposeTestCheckFunc(s.stays, once("rollout.resumed"))},
		{
			Config: long(`desired_state = "promoted"`),
			Check:  resource.ComposeTestCheckFunc(s.stays, attr("sluice_rollout.test", "current_step", "3"), once("rollout.promoted")),
		},
		{Config: long(`desired_state = "canceled"`), ExpectError: regexp.MustCompile(`A cancel needs a reason`)},
		{
			Config: long("desired_state = \"canceled\"\n  reason = \"not today\""), ConfigPlanChecks: stays,
			Check: resource.ComposeTestCheckFunc(s.stays, attr("sluice_rollout.test", "state", "CANCELED"), once("rollout.canceled_complete"), once("rollout.promoted")),
		},
		{Config: long(`desired_state = "completed"`), ExpectError: regexp.MustCompile(`(?s)change\s+the\s+spec`)},
		{Config: long("desired_state = \"promoted\""), ExpectError: regexp.MustCompile(`(?s)is\s+CANCELED,\s+which\s+is\s+final`)},
		{Config: e.house("blue_green = {}\n  desired_state = \"canceled\"\n  reason = \"not today\"").hcl(), ExpectError: regexp.MustCompile(`A new rollout starts`)},
	}})
}

// A park is lifted by a decision: a new resume_token. A plain apply, and one with the
// token of last time, wait and lift nothing, however often a pipeline runs them.
func TestTerraformLiftsAParkOnlyForANewToken(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	allAnswered := e.traffic(t, 60)
	h := e.house(canaryBody + averageGate)
	h.candidate = "cr_slow"
	w := newWorkspace(t, e, realHouse(h))
	require.Contains(t, w.apply(t), "METRIC_REGRESSION")
	r := e.activeRollout(t)
	resumed := func() int { return e.happened(t, r.EndpointID, r.ID, "rollout.resumed") }
	for range 2 {
		out := w.apply(t)
		require.Contains(t, out, "is parked: METRIC_REGRESSION")
		require.NotContains(t, out, "The apply resumes")
		require.Zero(t, resumed())
	}
	h.rollout += "\n  resume_token = \"looked at the p95 with Ada\""
	w.write(t, realHouse(h))
	plan, code := w.run(t, "plan", "-no-color", "-detailed-exitcode")
	require.Equal(t, 2, code, plan)
	require.Contains(t, plan, "The apply resumes rollout "+r.ID+" at step 1")
	require.Contains(t, plan, `+ resume_token            = "looked at the p95 with Ada"`)
	require.Contains(t, w.apply(t), "is parked: METRIC_REGRESSION", "judged again, and parked anew")
	require.Equal(t, 1, resumed())
	require.NotContains(t, w.apply(t), "The apply resumes")
	require.Equal(t, 1, resumed(), "the token of last time lifts nothing")

	// A plan that somebody else's resume overtook: the park that it showed is gone.
	h.rollout = strings.Replace(h.rollout, "with Ada", "with Bob", 1)
	w.write(t, realHouse(h))
	plan, code = w.run(t, "plan", "-no-color", "-out=saved")
	require.Zero(t, code, plan)
	_, err := e.Client.ResumeRollout(t.Context(), r.EndpointID, r.ID, apiControl(""))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return e.happened(t, r.EndpointID, r.ID, "rollout.system_paused") >= 3 }, 20*time.Second, 20*time.Millisecond)
	e.reaches(t, r.EndpointID, r.ID, "SYSTEM_PAUSED")
	out, code := w.run(t, "apply", "-no-color", "-input=false", "saved")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "is left as it is")
	require.Equal(t, 2, resumed())
	show, _ := w.run(t, "show", "-no-color")
	require.NotContains(t, show, "tainted")
	require.NoError(t, allAnswered(nil))
}

// on_timeout is carried out once the time to wait is over, and told.
func TestTerraformCarriesOutOnTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ on, state, says string }{
		{"detach", "STABILIZING", "goes on at the engine"},
		{"pause", "PAUSED", `on_timeout = "pause" was carried out: it is PAUSED with 50% on the target`},
		{"cancel", "CANCELED", `on_timeout = "cancel" was carried out: it is CANCELED with 50% on the target`},
	} {
		t.Run(c.on, func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, fastEngine)
			w := newWorkspace(t, e, realHouse(e.house(`canary = { steps = [{ traffic = 50 }, { traffic = 100 }], step_interval = "1h" }
  on_timeout = "`+c.on+`"
  timeouts   = { create = "3s", update = "1s" }`)))
			plan, _ := w.run(t, "plan", "-no-color")
			require.Contains(t, plan, `+ on_timeout              = "`+c.on+`"`)
			require.Contains(t, plan, "wait_limit_seconds         = 3")
			out := w.apply(t)
			require.Contains(t, unwrapped(out), c.says)
			r := e.newest(t)
			require.Equal(t, c.state, engineclient.Short(r.State))
			show, _ := w.run(t, "show", "-no-color")
			require.NotContains(t, show, "tainted")
			require.Contains(t, show, r.ID)
			plan, _ = w.run(t, "plan", "-no-color")
			if c.on == "detach" { // the finding holds for the update's own time too
				require.Contains(t, unwrapped(plan), "TIMEOUT_SHORT: the waits alone take at least 2h")
				require.Contains(t, unwrapped(plan), "ends after 1s")
				require.Contains(t, plan, "wait_limit_seconds         = 3 -> 1")
			}
			if c.on == "cancel" {
				require.NotContains(t, plan, "must be replaced")
			}
		})
	}
}

// What an apply waits for can be followed in a file: every change one line, from the
// first state to the last, whatever Terraform shows.
func TestTerraformWritesAProgressFile(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	w := newWorkspace(t, e, realHouse(e.house(canaryBody)))
	path := filepath.Join(w.dir, "progress.jsonl")
	w.env = append(w.env, "SLUICE_PROGRESS_FILE="+path)
	w.apply(t)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Contains(t, lines[len(lines)-1], `"percent":100,"state":"COMPLETED"`)
	require.Greater(t, len(lines), 4)
	t.Logf("%s", lines[len(lines)-2])

	w = newWorkspace(t, e, strings.Replace(realHouse(e.house("")), `"chat"`, `"other"`, 1))
	w.env = append(w.env, "SLUICE_PROGRESS_FILE="+filepath.Join(w.dir, "missing", "progress.jsonl"))
	h := e.house(canaryBody)
	w.write(t, strings.ReplaceAll(strings.Replace(realHouse(h), `name = "chat"`, `name = "other"`, 1), "\t", ""))
	out := w.apply(t)
	require.Equal(t, 1, strings.Count(out, "The progress file is not written"), out)
}
