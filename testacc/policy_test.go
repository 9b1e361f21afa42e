package testacc

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/policy"
)

// policyEngine runs by the published timings: these plans are never applied.
const policyEngine = `
project: {id: proj_test, slug: acme}
fleet: {driver: simulated}
hardware:
  - {id: 1xtest, gpu_type: none, price_cents_per_hour: 249, capacity: 8}
configs:
  - {id: cr_any, models: ["*"], hardware: 1xtest, simulated: {cold_start: 50ms, latency: 5ms}}
`

// guarded is a rollout with what a policy looks at, on deployments that exist.
type guarded struct {
	model   string // of the target
	steps   string
	metrics string
	preview string // "" for the same spec
}

const (
	latencyGate = `{ name = "router_latency", stat = "PERCENTILE", percentile = 95, regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 25 } }`
	errorGate   = `{ name = "router_error_rate", threshold_check = { operator = "LT", value = 0.01 } }`
	pinned      = "projects/proj_test/models/ml_candidate/revisions/rv_7"
)

func (g guarded) deployments() string {
	return required + `provider "sluice" {}
resource "sluice_endpoint" "chat" { name = "chat" }
resource "sluice_deployment" "stable" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "stable"
  model                  = "projects/proj_test/models/ml_stable/revisions/rv_1"
  config                 = "cr_any"
  autoscaling            = { min_replicas = 2, max_replicas = 2 }
  initial_traffic_weight = 1
}
resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "candidate"
  model       = "` + g.model + `"
  config      = "cr_any"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`
}

func (g guarded) rollout() string {
	spec := `
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  canary  = { steps = ` + g.steps + ` }
  metrics = [` + g.metrics + `]
`
	preview := "data \"sluice_rollout_preview\" \"test\" {" + spec + "}\n"
	if g.preview != "" {
		preview = ""
	}
	return "resource \"sluice_rollout\" \"test\" {" + spec + "}\n" + preview
}

// plan makes the JSON of a real plan on deployments that are applied.
func (g guarded) plan(t *testing.T, engine string) []byte {
	t.Helper()
	e := startEngine(t, engine)
	w := newWorkspace(t, e, g.deployments())
	w.apply(t)
	w.write(t, g.deployments()+g.rollout())
	return w.planJSON(t)
}

func (w *workspace) planJSON(t *testing.T) []byte {
	t.Helper()
	out, code := w.run(t, "plan", "-no-color", "-input=false", "-out=plan.bin")
	require.Zero(t, code, out)
	raw, code := w.run(t, "show", "-json", "plan.bin")
	require.Zero(t, code, raw)
	return []byte(raw)
}

func good() guarded {
	return guarded{model: pinned, steps: "[{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }]", metrics: latencyGate + ", " + errorGate}
}

var (
	wednesday = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	friday    = time.Date(2026, 3, 6, 16, 0, 0, 0, time.UTC)
)

// preview is what a plan file keeps of a sluice_rollout_preview.
type preview struct {
	PlanDigest string `json:"plan_digest"`
}

func previewIn(t *testing.T, plan []byte) preview {
	t.Helper()
	var p preview
	require.NoError(t, json.Unmarshal(previewValues(t, plan), &p))
	return p
}

func previewValues(t *testing.T, plan []byte) json.RawMessage {
	t.Helper()
	var read struct {
		PriorState struct {
			Values struct {
				RootModule struct {
					Resources []struct {
						Type   string          `json:"type"`
						Values json.RawMessage `json:"values"`
					} `json:"resources"`
				} `json:"root_module"`
			} `json:"values"`
		} `json:"prior_state"`
	}
	require.NoError(t, json.Unmarshal(plan, &read))
	for _, r := range read.PriorState.Values.RootModule.Resources {
		if r.Type == "sluice_rollout_preview" {
			return r.Values
		}
	}
	t.Fatal("the plan keeps no preview")
	return nil
}

// saidAt is who said each remark, of what.
func saidAt(v policy.Verdict) []string {
	var out []string
	for _, r := range v.Remarks {
		out = append(out, r.Rule+" of "+r.Address)
	}
	return out
}

// rulesSaid are the names of the rules that deny, without repeats.
func rulesSaid(v policy.Verdict) []string {
	var out []string
	for _, r := range v.Remarks {
		if r.Severity == policy.Deny && (len(out) == 0 || out[len(out)-1] != r.Rule) {
			out = append(out, r.Rule)
		}
	}
	return out
}

// Each rule of the example passes a plan that keeps it and refuses one that does not,
// and no other rule says anything then.
func TestPolicyRulesOnRealPlans(t *testing.T) {
	t.Parallel()
	folder := os.DirFS(filepath.Join("..", "examples", "policy", "rego"))
	rules, err := policy.Load(folder)
	require.NoError(t, err)
	raw, err := fs.ReadFile(folder, "data.json")
	require.NoError(t, err)
	policyLimits := string(raw)
	judge := func(t *testing.T, plan []byte, data string, now time.Time) policy.Verdict {
		t.Helper()
		v, err := rules.Judge(t.Context(), policy.Question{Plan: plan, Data: []byte(data), Now: now})
		require.NoError(t, err)
		return v
	}
	keeps := good().plan(t, policyEngine)

	t.Run("a plan that keeps them all", func(t *testing.T) {
		require.Empty(t, judge(t, keeps, "", wednesday).Remarks)
	})
	broken := map[string]struct {
		change func(*guarded)
		engine string
		says   string
	}{
		"gates":        {change: func(g *guarded) { g.metrics = latencyGate }, says: `no error gate: add a metric "router_error_rate"`},
		"first_step":   {change: func(g *guarded) { g.steps = "[{ traffic = 11 }, { traffic = 100 }]" }, says: "the first step moves 11 %"},
		"blast_radius": {change: func(g *guarded) { g.steps = "[{ traffic = 11 }, { traffic = 100 }]" }, says: "11 % of traffic reaches the target before any gate"},
		"soak":         {engine: policyEngine + "timings: {ingestion_lag: 10s, default_window: 300s, minimum_window: 60s}\n", says: "step 1 waits 310 s, and its gate needs 390 s"},
		"pinned_model": {change: func(g *guarded) { g.model = "projects/proj_test/models/ml_candidate" }, says: "names no revision"},
		"price":        {change: func(g *guarded) { g.preview = "none" }, says: "its price is not known"},
	}
	for rule, c := range broken {
		t.Run(rule, func(t *testing.T) {
			g, engine := good(), policyEngine
			if c.change != nil {
				c.change(&g)
			}
			if c.engine != "" {
				engine = c.engine
			}
			v := judge(t, g.plan(t, engine), "", wednesday)
			said := rulesSaid(v)
			require.Contains(t, said, rule)
			if rule == "first_step" || rule == "blast_radius" {
				require.Equal(t, []string{"blast_radius", "first_step"}, said, "an early gate is what limits the radius, so one change breaks both")
			} else {
				require.Equal(t, []string{rule}, said)
			}
			var text []string
			for _, r := range v.Remarks {
				require.Equal(t, "sluice_rollout.test", r.Address)
				text = append(text, r.Message)
			}
			require.Contains(t, strings.Join(text, "\n"), c.says)
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(saidAt(v)))), len(v.Remarks), "a rule speaks once of a rollout")
		})
	}

	t.Run("a target that is made in the same plan is seen, its price is not", func(t *testing.T) {
		e := startEngine(t, policyEngine)
		w := newWorkspace(t, e, good().deployments()+strings.Split(good().rollout(), "data ")[0])
		v := judge(t, w.planJSON(t), "", wednesday)
		require.Equal(t, []string{"price"}, rulesSaid(v))
		require.Contains(t, v.Remarks[0].Message, "its price is not known")
	})
	t.Run("a target from elsewhere cannot be seen", func(t *testing.T) {
		e := startEngine(t, policyEngine)
		w := newWorkspace(t, e, good().deployments())
		w.apply(t)
		w.write(t, required+"provider \"sluice\" {}\nvariable \"endpoint\" {}\nvariable \"target\" {}\nvariable \"from\" {}\n"+strings.NewReplacer(
			"sluice_endpoint.chat.id", "var.endpoint", "sluice_deployment.candidate.id", "var.target", "sluice_deployment.stable.id", "var.from").Replace(good().rollout()))
		require.NoError(t, os.Remove(filepath.Join(w.dir, "terraform.tfstate")))
		ids := e.ids(t)
		w.env = append(w.env, "TF_VAR_endpoint="+ids["chat"], "TF_VAR_target="+ids["candidate"], "TF_VAR_from="+ids["stable"])
		v := judge(t, w.planJSON(t), "", wednesday)
		require.Equal(t, []string{"pinned_model"}, rulesSaid(v))
		require.Contains(t, v.Remarks[0].Message, "cannot be seen")
	})
	t.Run("known", func(t *testing.T) {
		e := startEngine(t, policyEngine)
		w := newWorkspace(t, e, strings.Replace(good().deployments(), `provider "sluice" {}`, "resource \"terraform_data\" \"url\" { input = \"x\" }\nprovider \"sluice\" { engine_url = terraform_data.url.output }", 1)+strings.Split(good().rollout(), "data ")[0])
		require.Contains(t, rulesSaid(judge(t, w.planJSON(t), "", wednesday)), "known")
	})
	t.Run("price above its ceiling", func(t *testing.T) {
		v := judge(t, keeps, strings.ReplaceAll(policyLimits, `"overlap_cost_cents": 5000`, `"overlap_cost_cents": 1`), wednesday)
		require.Equal(t, []string{"price"}, rulesSaid(v))
		require.Contains(t, v.Remarks[0].Message, "both sides at once cost")
	})
	t.Run("approvals", func(t *testing.T) {
		digest := previewIn(t, keeps).PlanDigest
		cheap := strings.ReplaceAll(policyLimits, `"approval_above_cents": 1000`, `"approval_above_cents": 1`)
		with := func(approvals string) policy.Verdict {
			return judge(t, keeps, strings.TrimSuffix(strings.TrimSpace(cheap), "}")+`, "author": "ana", "approvals": `+approvals+"}", wednesday)
		}
		for name, approvals := range map[string]string{
			"nobody":                     `[]`,
			"one person":                 `[{"digest": "` + digest + `", "by": "bo"}]`,
			"one person twice":           `[{"digest": "` + digest + `", "by": "bo"}, {"digest": "` + digest + `", "by": "bo"}]`,
			"the author and one":         `[{"digest": "` + digest + `", "by": "bo"}, {"digest": "` + digest + `", "by": "ana"}]`,
			"two people of another plan": `[{"digest": "sha256:0", "by": "bo"}, {"digest": "sha256:0", "by": "cy"}]`,
		} {
			v := with(approvals)
			require.Equal(t, []string{"approvals"}, rulesSaid(v), name)
			require.Contains(t, v.Remarks[0].Message, digest, name)
		}
		require.Empty(t, with(`[{"digest": "`+digest+`", "by": "bo"}, {"digest": "`+digest+`", "by": "cy"}]`).Remarks)
	})
	t.Run("freeze", func(t *testing.T) {
		v := judge(t, keeps, "", friday)
		require.Equal(t, []string{"freeze"}, rulesSaid(v))
		require.Equal(t, []string{"on-call"}, v.Remarks[0].Override)
		require.Empty(t, judge(t, keeps, "", friday.Add(-time.Minute)).Remarks)
	})
}

// One folder at one standing engine, planned by terraform and by sluice plan: the same
// live facts under the same names, so that one policy says the same of both, also of what
// a rollout costs and of who approved it.
func TestOnePolicyJudgesLiveFactsAtBothDoors(t *testing.T) {
	t.Parallel()
	rules := policyOfExamples(t)
	raw, err := os.ReadFile(filepath.Join("..", "examples", "policy", "rego", "data.json"))
	require.NoError(t, err)
	asked := map[string]string{
		"named source":    good().rollout(),
		"inferred source": strings.ReplaceAll(good().rollout(), "source_deployment_id = sluice_deployment.stable.id", ""),
	}
	e := startEngine(t, policyEngine)
	w := newWorkspace(t, e, good().deployments())
	w.apply(t)
	for name, rollout := range asked {
		w.write(t, good().deployments()+rollout)
		theirs, ours := w.bothPlan(t, nil)
		var want, got map[string]any
		require.NoError(t, json.Unmarshal(previewValues(t, theirs), &want))
		require.NoError(t, json.Unmarshal(previewValues(t, ours), &got))
		require.Equal(t, 0.0, got["final_source_replicas"], "the resource has a default where the data source has none")
		delete(want, "final_source_replicas")
		delete(got, "final_source_replicas")
		require.Equal(t, want, got, name)
		require.NoError(t, keeps(t, planSchema(t, "rollout_preview.schema.json"), previewValues(t, ours)), name)
		digest := previewIn(t, ours).PlanDigest
		dear := strings.ReplaceAll(string(raw), `"overlap_cost_cents": 5000`, `"overlap_cost_cents": 1`)
		looked := strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(string(raw), `"approval_above_cents": 1000`, `"approval_above_cents": 1`)), "}")
		for data, says := range map[string][]string{
			string(raw): {},
			dear:        {"price"},
			looked + `, "approvals": [{"digest": "` + digest + `", "by": "bo"}]}`:                                           {"approvals"},
			looked + `, "approvals": [{"digest": "` + digest + `", "by": "bo"}, {"digest": "` + digest + `", "by": "cy"}]}`: {},
		} {
			var both []policy.Verdict
			for _, plan := range [][]byte{theirs, ours} {
				v, err := rules.Judge(t.Context(), policy.Question{Plan: plan, Data: []byte(data), Now: wednesday})
				require.NoError(t, err)
				both = append(both, v)
			}
			require.Equal(t, both[0], both[1], name)
			require.ElementsMatch(t, says, rulesSaid(both[1]), name)
		}
	}
}

// A folder without the data source is judged by our door all the same: it asks by itself.
// What is not made yet has no price at either door.
func TestSluicePlanPricesAFolderWithoutPreviews(t *testing.T) {
	t.Parallel()
	rules := policyOfExamples(t)
	g := good()
	g.preview = "none"
	w := newWorkspace(t, startEngine(t, policyEngine), g.deployments()+g.rollout())
	theirs, ours := w.bothPlan(t, nil)
	require.Equal(t, []string{"price"}, rulesSaid(verdictOn(t, rules, ours)))
	require.Equal(t, verdictOn(t, rules, theirs), verdictOn(t, rules, ours))
	w.write(t, g.deployments())
	w.apply(t)
	w.write(t, g.deployments()+g.rollout())
	folder, err := filepath.Abs("../examples/policy/rego")
	require.NoError(t, err)
	said, errs, code := w.sluice(t, "plan", ".", "--json", "--policy", folder)
	require.Contains(t, []int{0, 1}, code, errs) // the example's freeze is of the week's end
	require.Empty(t, verdictOn(t, rules, []byte(said)).Remarks)
	require.NotContains(t, errs, "price")
}

// ids finds the endpoint and its deployments by name.
func (e *testEngine) ids(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for ep, err := range e.Client.Endpoints(t.Context(), engineclient.ListOptions{}) {
		require.NoError(t, err)
		out[filepath.Base(ep.Name)] = ep.ID
		for _, d := range ep.Deployments {
			out[filepath.Base(d.Name)] = d.ID
		}
	}
	return out
}

// The Sentinel rules cannot be run here, but each attribute that they name must stand
// in a real plan under that name.
func TestSentinelRulesNameWhatAPlanHas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "examples", "policy", "sentinel", "rollouts.sentinel"))
	require.NoError(t, err)
	var plan any
	require.NoError(t, json.Unmarshal(good().plan(t, policyEngine), &plan))
	keys := map[string]bool{}
	keysIn(plan, keys)
	named := regexp.MustCompile(`\b(?:after|facts|values|step|m|raw|prior_state|root_module)\.([a-z_]+)`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(named), 15)
	for _, n := range named {
		require.True(t, keys[n[1]], "no plan has %q (%s)", n[1], n[0])
	}
}

func keysIn(v any, into map[string]bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, inner := range x {
			into[k] = true
			keysIn(inner, into)
		}
	case []any:
		for _, inner := range x {
			keysIn(inner, into)
		}
	}
}
