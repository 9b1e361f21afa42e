package declaration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodCheck = `regression_check = { direction = "HIGHER_IS_WORSE" }`

func gateOf(rule string) string { return "canary = {}\nmetrics = [{ " + rule + " }]" }

// Each bad input is refused at the very text that is wrong.
func TestEachBadRolloutIsRefusedAtItsValue(t *testing.T) {
	for _, c := range []struct{ name, body, at, says string }{
		{"no_strategy", ``, `resource "sluice_rollout" "r"`, "exactly one of"},
		{"two_strategies", "canary = {}\nblue_green = {} # here", "{}", "canary and blue_green"},
		{"unknown_metric", gateOf(`name = "router_latencies", stat = "AVG", ` + goodCheck), `"router_latencies"`, `did you mean "router_latency"`},
		{"metrics_on_blue_green", "blue_green = {}\nmetrics = [{ name = \"router_error_rate\", " + goodCheck + " }]", `[{ name`, "staged steps"},
		{"latency_without_stat", gateOf(`name = "router_latency", ` + goodCheck), `{`, "needs a stat"},
		{"stat_max", gateOf(`name = "router_latency", stat = "MAX", ` + goodCheck), `"MAX"`, "not supported"},
		{"percentile_text", gateOf(`name = "router_latency", stat = "PERCENTILE", percentile = "p95", ` + goodCheck), `"p95"`, "whole number is required"},
		{"percentile_fraction", gateOf(`name = "router_latency", stat = "PERCENTILE", percentile = 99.9, ` + goodCheck), `99.9`, "whole number"},
		{"percentile_100", gateOf(`name = "router_latency", stat = "PERCENTILE", percentile = 100, ` + goodCheck), `100`, "between 1 and 99"},
		{"window_text", gateOf(`name = "router_latency", stat = "AVG", window = "five minutes", ` + goodCheck), `"five minutes"`, "not a duration"},
		{"window_zero", gateOf(`name = "router_latency", stat = "AVG", window = "0s", ` + goodCheck), `"0s"`, "holds no request"},
		{"no_check", gateOf(`name = "router_error_rate"`), `{ name`, "exactly one of"},
		{"direction", gateOf(`name = "router_error_rate", regression_check = { direction = "SIDEWAYS" }`), `"SIDEWAYS"`, "unknown"},
		{"budget", gateOf(`name = "router_error_rate", regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = -1 }`), `-1`, "at least 0"},
		{"operator", gateOf(`name = "router_error_rate", threshold_check = { operator = "EQ", value = 0.1 }`), `"EQ"`, "unknown"},
		{"threshold", gateOf(`name = "router_error_rate", threshold_check = { operator = "LT", value = 0 }`), `0`, "nothing can satisfy"},
		{"interval_zero", `canary = { step_interval = "0s" }`, `"0s"`, "not positive"},
		{"ladder_falls", `canary = { steps = [{ traffic = 50 }, { traffic = 10 }, { traffic = 100 }] }`, `10`, "climbs strictly"},
		{"ladder_early", `canary = { steps = [{ traffic = 10 }, { traffic = 90 }] }`, `90`, "end it at 100"},
		{"step_replicas", `canary = { steps = [{ traffic = 100, replicas = 0 }] }`, `0`, "at least 1"},
		{"step_missing", `canary = { steps = [{ replicas = 1 }] }`, `{`, "Missing canary.steps[0].traffic"},
		{"huge", `canary = { steps = [{ traffic = 1e300 }] }`, `1e300`, "whole number"},
		{"final_target", "blue_green = {}\nfinal_target_replicas = 0", `0`, "cannot serve"},
		{"final_source", "blue_green = {}\nfinal_source_replicas = -1", `-1`, "cannot be left"},
		{"same_sides", "blue_green = {}\nsource_deployment_id = sluice_deployment.b.id", `sluice_deployment.b.id`, "same deployment"},
		{"typo", "blue_green = {}\nfinal_target_replica = 1", `final_target_replica`, `did you mean "final_target_replicas"`},
		{"typo_inside", "canary = { stepz = [{ traffic = 100 }] }", `stepz`, `did you mean "steps"`},
		{"typo_deep", gateOf(`name = "router_error_rate", windows = "60s", ` + goodCheck), `windows`, `did you mean "window"`},
		{"block_form", "canary {\n}", `canary`, "with an equals sign"},
		{"computed", "blue_green = {}\nstate = \"COMPLETED\"", `state`, "cannot be set"},
		{"choice", "blue_green = {}\non_parked = \"fail\"", `"fail"`, "none of warn, silent"},
		{"a cancel without a reason", "blue_green = {}\ndesired_state = \"canceled\"", `"canceled"`, "give reason"},
		{"flag", "blue_green = {}\nwait = \"maybe\"", `"maybe"`, "True or false is required"},
		{"endpoint_as_side", "blue_green = {}\nsource_deployment_id = sluice_endpoint.chat.id", `sluice_endpoint.chat.id`, "not the id of a sluice_deployment"},
		{"no_such", "blue_green = {}\nsource_deployment_id = sluice_deployment.aa.id", `sluice_deployment.aa.id`, `did you mean "a"`},
		{"no_such_attribute", "blue_green = {}\nsource_deployment_id = sluice_deployment.a.idd", `.idd`, "idd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := chat + rolloutHead + c.body + "\n}\n"
			_, ds := one(src)
			require.Error(t, ds.Err())
			var said []string
			for _, d := range ds {
				if d.Severity != Error {
					continue
				}
				text := src[d.Range.Start.Byte:d.Range.End.Byte]
				said = append(said, text+" :: "+d.String())
				if strings.HasPrefix(text, c.at) && strings.Contains(strings.ToLower(d.String()), strings.ToLower(c.says)) {
					return
				}
			}
			require.Fail(t, "not refused as it should", "want %q at %q, got\n%s", c.says, c.at, strings.Join(said, "\n"))
		})
	}
}

func TestWhatOnlyTerraformDoesIsRefusedWithItsLine(t *testing.T) {
	for _, src := range []string{
		"module \"m\" {\n  source = \"./m\"\n}",
		"resource \"aws_lb\" \"l\" {}",
		"data \"aws_region\" \"r\" {}",
		"output \"o\" {\n  value = module.m.id\n}",
		"output \"o\" {\n  value = aws_lb.l.id\n}",
	} {
		_, ds := one(src)
		require.ErrorContains(t, ds.Err(), "Only Terraform can evaluate", src)
		require.ErrorContains(t, ds.Err(), "main.tf:", src)
		require.ErrorContains(t, ds.Err(), "under Terraform", src)
	}
}

func TestTheShortestWindowIsTheEngines(t *testing.T) {
	src := []File{{Name: "main.tf", Bytes: []byte(chat + rolloutHead + gateOf(`name = "router_error_rate", window = "1s", `+goodCheck) + "\n}")}}
	_, ds := LoadFiles(src, Options{})
	clean(t, ds)
	withEngine := timingsOf(Options{})
	withEngine.MinimumWindow = 60e9
	_, ds = LoadFiles(src, Options{Timings: &withEngine})
	require.ErrorContains(t, ds.Err(), "below the minimum of 1m0s")
}

func TestUnknownsOfADataSourceAreNamedAndNotGuessed(t *testing.T) {
	set, ds := one(chat + `
data "sluice_rollout_preview" "p" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.b.id
}` + rolloutHead + `
  canary = { steps = [{ traffic = data.sluice_rollout_preview.p.seed_percent }, { traffic = 100 }] }
}`)
	clean(t, ds)
	require.Equal(t, Note, ds[0].Severity)
	require.Equal(t, []string{"canary.steps[0].traffic"}, set.Rollouts[0].Unknown)
	_, err := set.Rollouts[0].Resolve(nil)
	require.ErrorContains(t, err, "canary.steps[0].traffic is not known yet")
}
