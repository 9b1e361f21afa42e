package testacc

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/stretchr/testify/require"
)

const goodCheck = `regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 10 }`

// badInputs are the refusals of the platform's create call, as a person would write
// them in HCL: the body of a rollout, the attribute that must be pointed at, and
// what the message must say.
var badInputs = []struct{ name, body, attribute, says string }{
	{"no_strategy", ``, "", "exactly one of"},
	{"two_strategies", "canary = {}\nblue_green = {}", "blue_green", "canary and blue_green"},
	{"unknown_metric", gate(`name = "router_latencies", stat = "AVG", ` + goodCheck), "metrics[0].name", "did you mean \"router_latency\""},
	{"metrics_on_blue_green", "blue_green = {}\nmetrics = [{ name = \"router_error_rate\", " + goodCheck + " }]", "metrics", "staged steps"},
	{"metrics_on_rolling", "rolling = {}\nmetrics = [{ name = \"router_error_rate\", " + goodCheck + " }]", "metrics", "staged steps"},
	{"latency_without_stat", gate(`name = "router_latency", ` + goodCheck), "metrics[0].stat", "needs a stat"},
	{"stat_max", gate(`name = "router_latency", stat = "MAX", ` + goodCheck), "metrics[0].stat", "not supported"},
	{"stat_min_full", gate(`name = "router_latency", stat = "METRIC_STAT_TYPE_MIN", ` + goodCheck), "metrics[0].stat", "not supported"},
	{"percentile_on_errors", gate(`name = "router_error_rate", stat = "PERCENTILE", percentile = 95, ` + goodCheck), "metrics[0].stat", "no percentiles"},
	{"percentile_with_average", gate(`name = "router_latency", stat = "AVG", percentile = 95, ` + goodCheck), "metrics[0].percentile", "PERCENTILE only"},
	{"percentile_text", gate(`name = "router_latency", stat = "PERCENTILE", percentile = "p95", ` + goodCheck), "metrics", "a number is required"},
	{"percentile_fraction", gate(`name = "router_latency", stat = "PERCENTILE", percentile = 99.9, ` + goodCheck), "metrics[0].percentile", "Write 99 or 100"},
	{"percentile_as_part_of_one", gate(`name = "router_latency", stat = "PERCENTILE", percentile = 0.95, ` + goodCheck), "metrics[0].percentile", "Write 95, not 0\\.95"},
	{"fraction_beside_another", gate(`name = "router_latencies", stat = "PERCENTILE", percentile = 0.95, ` + goodCheck), "metrics[0].name", "did you mean \"router_latency\""},
	{"far_below", "\n\n\n\ncanary = {}\nmetrics = [\n{\nname = \"router_error_rate\"\n}]", "metrics[0]", "exactly one of"},
	{"percentile_100", gate(`name = "router_latency", stat = "PERCENTILE", percentile = 100, ` + goodCheck), "metrics[0].percentile", "between 1 and 99"},
	{"window_text", gate(`name = "router_latency", stat = "AVG", window = "five minutes", ` + goodCheck), "metrics[0].window", "not a duration"},
	{"window_zero", gate(`name = "router_latency", stat = "AVG", window = "0s", ` + goodCheck), "metrics[0].window", "holds no request"},
	{"window_negative", gate(`name = "router_latency", stat = "AVG", window = "-5s", ` + goodCheck), "metrics[0].window", "below the minimum"},
	{"no_check", gate(`name = "router_error_rate"`), "metrics[0]", "exactly one of"},
	{"both_checks", gate(`name = "router_error_rate", ` + goodCheck + `, threshold_check = { operator = "LT", value = 0.01 }`), "metrics[0]", "exactly one of"},
	{"direction", gate(`name = "router_error_rate", regression_check = { direction = "SIDEWAYS" }`), "metrics[0].regression_check.direction", "unknown"},
	{"budget_negative", gate(`name = "router_error_rate", regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = -1 }`), "metrics[0].regression_check.max_regression_percent", "at least 0"},
	{"budget_never_fails", gate(`name = "router_error_rate", regression_check = { direction = "LOWER_IS_WORSE", max_regression_percent = 100 }`), "metrics[0].regression_check.max_regression_percent", "never fail"},
	{"operator", gate(`name = "router_error_rate", threshold_check = { operator = "EQ", value = 0.1 }`), "metrics[0].threshold_check.operator", "unknown"},
	{"never_passes", gate(`name = "router_error_rate", threshold_check = { operator = "LT", value = 0 }`), "metrics[0].threshold_check.value", "nothing can satisfy"},
	{"never_passes_2", gate(`name = "router_error_rate", threshold_check = { operator = "GT", value = 1 }`), "metrics[0].threshold_check.value", "nothing can satisfy"},
	{"never_fails", gate(`name = "router_error_rate", threshold_check = { operator = "LTE", value = 1 }`), "metrics[0].threshold_check.value", "never fail"},
	{"never_fails_2", gate(`name = "router_latency", stat = "AVG", threshold_check = { operator = "GTE", value = 0 }`), "metrics[0].threshold_check.value", "never fail"},
	{"interval_zero", `canary = { step_interval = "0s" }`, "canary.step_interval", "not positive"},
	{"interval_negative", `canary = { step_interval = "-1m" }`, "canary.step_interval", "not positive"},
	{"interval_text", `canary = { step_interval = "10 minutes" }`, "canary.step_interval", "not a duration"},
	{"ladder_falls", `canary = { steps = [{ traffic = 50 }, { traffic = 10 }, { traffic = 100 }] }`, "canary.steps[1].traffic", "climbs strictly"},
	{"ladder_repeats", `canary = { steps = [{ traffic = 50 }, { traffic = 50 }, { traffic = 100 }] }`, "canary.steps[1].traffic", "climbs strictly"},
	{"ladder_ends_early", `canary = { steps = [{ traffic = 10 }, { traffic = 90 }] }`, "canary.steps[1].traffic", "end it at 100"},
	{"ladder_over_100", `canary = { steps = [{ traffic = 110 }] }`, "canary.steps[0].traffic", "1 to 100"},
	{"ladder_fraction", `canary = { steps = [{ traffic = 12.5 }, { traffic = 100 }] }`, "canary.steps[0].traffic", "Write 12 or 13"},
	{"step_replicas", `canary = { steps = [{ traffic = 100, replicas = 0 }] }`, "canary.steps[0].replicas", "at least 1"},
	{"final_target", "blue_green = {}\nfinal_target_replicas = 0", "final_target_replicas", "cannot serve"},
	{"final_source", "blue_green = {}\nfinal_source_replicas = -1", "final_source_replicas", "cannot be left"},
	{"final_target_fraction", "blue_green = {}\nfinal_target_replicas = 1.5", "final_target_replicas", "Write 1 or 2"},
	{"step_replicas_fraction", `canary = { steps = [{ traffic = 100, replicas = 0.5 }] }`, "canary.steps[0].replicas", "Write 0 or 1"},
	{"same_sides", "blue_green = {}\nsource_deployment_id = \"dep_b\"", "target_deployment_id", "same deployment"},
}

func gate(rule string) string { return "canary = {}\nmetrics = [{ " + rule + " }]" }

type validation struct {
	Diagnostics []struct {
		Severity string `json:"severity"`
		Summary  string `json:"summary"`
		Detail   string `json:"detail"`
		Snippet  struct {
			Context string `json:"context"`
			Code    string `json:"code"`
		} `json:"snippet"`
	} `json:"diagnostics"`
}

// Each kind of bad input is refused by the real terraform at the attribute that is
// wrong, offline and before any plan (L7), and good ones beside them are not.
func TestTerraformRefusesEachBadInputOnItsAttribute(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	var hcl strings.Builder
	hcl.WriteString(required)
	for _, c := range badInputs {
		fmt.Fprintf(&hcl, "resource \"sluice_rollout\" %q {\n  endpoint_id = \"ep_1\"\n  target_deployment_id = \"dep_b\"\n%s\n}\n", c.name, c.body)
	}
	hcl.WriteString(`
variable "p" { type = number }
resource "sluice_rollout" "good_unknowns" {
  endpoint_id          = "ep_1"
  target_deployment_id = "dep_b"
  canary               = { steps = [{ traffic = var.p }, { traffic = 100 }], step_interval = "10m" }
  metrics = [{
    name             = "router_latency"
    stat             = "METRIC_STAT_TYPE_PERCENTILE"
    percentile       = var.p
    regression_check = { direction = "REGRESSION_DIRECTION_HIGHER_IS_WORSE" }
  }]
}
`)
	w := newWorkspace(t, e, hcl.String())
	out, _ := w.run(t, "validate", "-json")
	var v validation
	require.NoError(t, json.Unmarshal([]byte(out), &v), out)
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			for _, d := range v.Diagnostics {
				if d.Severity != "error" || d.Snippet.Context != fmt.Sprintf("resource \"sluice_rollout\" %q", c.name) {
					continue
				}
				text := strings.Join(strings.Fields(d.Summary+" "+d.Detail), " ")
				said = append(said, d.Snippet.Code+" :: "+text)
				// The line is that of the block's attribute, and our own words name the path.
				top := regexp.MustCompile(`^\w*`).FindString(c.attribute)
				where := strings.HasPrefix(strings.TrimSpace(d.Snippet.Code), orElse(top, "resource")) &&
					(c.attribute == top || strings.HasSuffix(d.Summary, " at "+c.attribute))
				if regexp.MustCompile("(?i)"+c.says).MatchString(text) && where {
					return
				}
			}
			require.Fail(t, "not refused as it should", "want %q at %q, got:\n%s", c.says, c.attribute, strings.Join(said, "\n"))
		})
	}
	for _, d := range v.Diagnostics {
		require.NotContains(t, d.Summary+d.Detail, "error in the provider")
		require.NotContains(t, d.Snippet.Context, "good_unknowns", d.Summary+d.Detail)
	}
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// What only the engine knows is refused at plan: its shortest window, a final count
// above what the source has, deployments of another endpoint.
func TestTerraformPlanRefusesWhatTheEngineWould(t *testing.T) {
	t.Parallel()
	e := startEngine(t, fastEngine)
	base := e.house("")
	short := e.house(canaryBody + strings.Replace(averageGate, `"1s"`, `"100ms"`, 1))
	elsewhere := e.house(`blue_green = {}`)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: inProcess, Steps: []resource.TestStep{
		{Config: base.hcl()},
		{Config: short.hcl(), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)below\s+the\s+minimum\s+of\s+500ms`)},
		{Config: e.house("blue_green = {}\nfinal_source_replicas = 3").hcl(), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)final_source_replicas.*3\s+replicas\s+cannot\s+be\s+left`)},
		{
			Config:   strings.Replace(elsewhere.hcl(), "source_deployment_id = sluice_deployment.stable.id", `source_deployment_id = "dep_of_somebody"`, 1),
			PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)source_deployment_id.*dep_of_somebody\s+is\s+not\s+one\s+of\s+endpoint`),
		},
		{Config: strings.Replace(base.hcl(), "api_key    = ", `api_key    = "x" #`, 1), ExpectError: regexp.MustCompile(`(?s)API\s+key`)},
		{Config: base.hcl()},
	}})
}
