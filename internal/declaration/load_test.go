package declaration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

var update = flag.Bool("update", false, "write the golden files anew")

// one reads one file.
func one(src string) (Set, Diagnostics) {
	return LoadFiles([]File{{Name: "main.tf", Bytes: []byte(src)}}, Options{})
}

const chat = `
resource "sluice_endpoint" "chat" {
  name = "chat"
}
resource "sluice_deployment" "a" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "a"
  autoscaling = { min_replicas = 1, max_replicas = 2 }
}
resource "sluice_deployment" "b" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`

const rolloutHead = `
resource "sluice_rollout" "r" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.b.id
`

func clean(t *testing.T, ds Diagnostics) {
	t.Helper()
	require.NoError(t, ds.Err())
}

func TestEveryExampleIsRead(t *testing.T) {
	seen := 0
	require.NoError(t, filepath.WalkDir("../../examples", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if tf, _ := filepath.Glob(filepath.Join(path, "*.tf")); len(tf) == 0 {
			return nil
		}
		seen++
		t.Run(path, func(t *testing.T) {
			options := Options{Environ: []string{"TF_VAR_endpoint_id=ep_1", "TF_VAR_qwen25_id=dep_a", "TF_VAR_qwen35_id=dep_b"}}
			if strings.Contains(path, "data-sources") || strings.HasPrefix(filepath.Base(path), "sluice_") {
				options = Options{}
			}
			set, ds := Load(path, options)
			if strings.HasSuffix(path, "resources/sluice_traffic_split") {
				require.ErrorContains(t, ds.Err(), `Only Terraform can evaluate resource "sluice_traffic_split"`)
				return
			}
			if strings.Contains(path, "examples/actions") {
				require.ErrorContains(t, ds.Err(), "Only Terraform can evaluate action")
				return
			}
			if strings.Contains(path, "examples/functions") { // which need Terraform, and this door says so
				require.NotEmpty(t, ds)
				for _, d := range ds {
					require.Equal(t, "Only Terraform can evaluate a provider's functions", d.Summary)
					require.Contains(t, d.Hint, "run this folder under Terraform")
				}
				return
			}
			if rest := othersMissing(ds); len(rest) > 0 {
				clean(t, rest)
			}
			if strings.HasSuffix(path, "examples/canary") {
				require.Len(t, set.Rollouts, 1)
				r := set.Rollouts[0]
				require.Equal(t, []rollout.StepSpec{{Percent: 10}, {Percent: 50}, {Percent: 100}}, r.Spec.Steps)
				require.Equal(t, 300*time.Second, r.Spec.Rules[0].Window)
				require.Equal(t, "${sluice_deployment.qwen25.id}", r.Spec.Source)
				require.Equal(t, 27, r.RangeOf("metrics[0].window").Start.Line)
			}
		})
		return nil
	}))
	require.Greater(t, seen, 6)
}

// othersMissing drops what documentation's fragments leave out on purpose: the
// resources around them.
func othersMissing(ds Diagnostics) Diagnostics {
	return slices.DeleteFunc(slices.Clone(ds), func(d Diagnostic) bool {
		return strings.HasPrefix(d.Summary, "sluice_") && strings.HasSuffix(d.Summary, "is not declared")
	})
}

// What a folder means, written for people: testdata/NAME/*.tf and NAME/meaning.txt.
func TestFoldersMeanWhatTheirTextSays(t *testing.T) {
	folders, err := filepath.Glob("testdata/*/main.tf")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, f := range folders {
		dir := filepath.Dir(f)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			first := describe(Load(dir, Options{}))
			for range 20 {
				require.Equal(t, first, describe(Load(dir, Options{})), "the same input gives the same output")
			}
			golden := filepath.Join(dir, "meaning.txt")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(first), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), first)
		})
	}
}

func describe(set Set, ds Diagnostics) string {
	var b strings.Builder
	for _, a := range set.Order {
		fmt.Fprintf(&b, "%s\n", a)
		for _, e := range set.Endpoints {
			if e.Address == a {
				fmt.Fprintf(&b, "  name %s at line %d, %s\n", e.Name.Value, e.Name.Range.Start.Line, e.Visibility.Value)
			}
		}
		for _, d := range set.Deployments {
			if d.Address == a {
				fmt.Fprintf(&b, "  needs %v\n  of %s, name %s, model %q, config %q, replicas %d to %d, weight %v, wait %v\n", d.DependsOn, d.Endpoint, d.Name.Value, d.Model.Value, d.Config.Value,
					d.MinReplicas.Value, d.MaxReplicas.Value, d.InitialTrafficWeight.Value, d.WaitReady.Value)
			}
		}
		for _, r := range set.Rollouts {
			if r.Address == a {
				describeRollout(&b, r)
			}
		}
	}
	for _, o := range set.Outputs {
		fmt.Fprintf(&b, "output %s: known %v, sensitive %v %s\n", o.Name, o.Known, o.Sensitive, o.JSON)
	}
	for _, m := range set.Moves {
		fmt.Fprintf(&b, "moved %s to %s\n", m.From, m.To)
	}
	if b.Len() > 0 && len(ds) > 0 {
		b.WriteString("\n")
	}
	if err := ds.Render(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

func describeRollout(b *strings.Builder, r Rollout) {
	source := r.Source.String()
	if source == "" {
		source = "the one that serves"
	}
	fmt.Fprintf(b, "  needs %v\n  %s on %s: from %s to %s", r.DependsOn, r.Spec.Strategy, r.Endpoint, source, r.Target)
	for _, st := range r.Spec.Steps {
		fmt.Fprintf(b, ", %d%%", st.Percent)
	}
	fmt.Fprintf(b, "; wait %v\n", r.Spec.StepInterval)
	for i, rule := range r.Spec.Rules {
		fmt.Fprintf(b, "  gate at line %d: %s %s %d over %v", r.RangeOf(fmt.Sprintf("metrics[%d]", i)).Start.Line, rule.Metric, rule.Stat, rule.Percentile, rule.Window)
		if c := rule.Regression; c != nil {
			fmt.Fprintf(b, ", %s by %v %%", c.Direction, c.MaxPercent)
		}
		if c := rule.Threshold; c != nil {
			fmt.Fprintf(b, ", %s %v", c.Operator, c.Value)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "  %s, %s, wait %v, create timeout %v, unknown %v\n", r.OnParked.Value, r.DestroyBehavior.Value, r.Wait.Value, r.Timeouts.Create.Value, r.Unknown)
}

func TestAnIdIsPassedOnThroughLocalsAndConditions(t *testing.T) {
	set, ds := one(chat + `
locals {
  sides = { old = sluice_deployment.a.id, new = sluice_deployment.b.id }
  pick  = true ? local.sides.new : local.sides.old
}
resource "sluice_rollout" "r" {
  endpoint_id          = sluice_deployment.a.endpoint_id
  source_deployment_id = lookup(local.sides, "old")
  target_deployment_id = "${local.pick}"
  blue_green           = {}
}`)
	clean(t, ds)
	r, ok := set.Rollout("sluice_rollout.r")
	require.True(t, ok)
	require.Equal(t, "${sluice_endpoint.chat.id}", r.Endpoint.String())
	require.Equal(t, "${sluice_deployment.a.id}", r.Source.String())
	require.Equal(t, "${sluice_deployment.b.id}", r.Target.String())
	_, err := r.Resolve(nil)
	require.ErrorContains(t, err, "sluice_deployment.a.id is not known yet")
	spec, err := r.Resolve(map[Ref]string{*r.Source.To: "dep_a", *r.Target.To: "dep_b"})
	require.NoError(t, err)
	require.Equal(t, "dep_a", spec.Source)
	require.Equal(t, "dep_b", spec.Target)
}

func TestATextMadeFromAnIdIsNotTakenForTheId(t *testing.T) {
	for _, made := range []string{`"${sluice_deployment.b.id}-x"`, `lower(sluice_deployment.b.id)`, `upper(sluice_deployment.b.id)`,
		`sluice_deployment.a.id == "dep_1" ? sluice_deployment.a.id : sluice_deployment.b.id`} {
		_, ds := one(chat + strings.Replace(rolloutHead, "sluice_deployment.b.id", made, 1) + "blue_green = {}\n}")
		require.ErrorContains(t, ds.Err(), "target_deployment_id", made)
	}
}

func TestKnownIdsTakeThePlaceOfReferences(t *testing.T) {
	b := Address{Kind: DeploymentKind, Name: "b"}
	set, ds := LoadFiles([]File{{Name: "main.tf", Bytes: []byte(chat + rolloutHead + "rolling = {}\n}")}}, Options{Known: map[Ref]cty.Value{{b, "id"}: cty.StringVal("dep_b")}})
	clean(t, ds)
	require.Equal(t, Link{ID: "dep_b", Range: set.Rollouts[0].Target.Range}, set.Rollouts[0].Target)
	require.Equal(t, "dep_b", set.Rollouts[0].Spec.Target)
}

func TestSpellingsOfOneSpecMeanTheSame(t *testing.T) {
	body := `
  canary  = { steps = [{ traffic = %s }, { traffic = 100 }], step_interval = %q }
  metrics = [{ name = "router_latency", stat = %q, percentile = 95, window = %q, regression_check = { direction = %q %s } }]
}`
	long, ds := one(chat + rolloutHead + fmt.Sprintf(body, "10", "10m", "METRIC_STAT_TYPE_PERCENTILE", "5m", "REGRESSION_DIRECTION_HIGHER_IS_WORSE", ", max_regression_percent = 0"))
	clean(t, ds)
	short, ds := one(chat + rolloutHead + fmt.Sprintf(body, `"10"`, "600s", "PERCENTILE", "300s", "HIGHER_IS_WORSE", ""))
	clean(t, ds)
	require.Equal(t, long.Rollouts[0].Spec, short.Rollouts[0].Spec)
	require.Equal(t, 600*time.Second, long.Rollouts[0].Spec.StepInterval)
}

func TestVariablesComeInTerraformsOrder(t *testing.T) {
	main := File{Name: "main.tf", Bytes: []byte(chat + rolloutHead + `
  canary = { step_interval = var.wait }
}
variable "wait" {
  type    = string
  default = "1m"
}`)}
	wait := func(o Options, files ...File) time.Duration {
		set, ds := LoadFiles(append(files, main), o)
		clean(t, ds)
		return set.Rollouts[0].Spec.StepInterval
	}
	environ := Options{Environ: []string{"TF_VAR_wait=2m", "TF_VAR_other=x", "HOME=/"}}
	plain := File{Name: "terraform.tfvars", Bytes: []byte(`wait = "3m"`)}
	json := File{Name: "terraform.tfvars.json", Bytes: []byte(`{"wait": "4m"}`)}
	auto := File{Name: "a.auto.tfvars", Bytes: []byte(`wait = "5m"`)}
	other := File{Name: "prod.tfvars", Bytes: []byte(`wait = "6m"`)}
	require.Equal(t, time.Minute, wait(Options{}))
	require.Equal(t, 2*time.Minute, wait(environ))
	require.Equal(t, 3*time.Minute, wait(environ, plain))
	require.Equal(t, 4*time.Minute, wait(environ, json, plain))
	require.Equal(t, 5*time.Minute, wait(environ, auto, json, plain))
	require.Equal(t, 5*time.Minute, wait(environ, auto, other), "a file that nobody named is not read")
	environ.Assign = []Assignment{{File: &other}}
	require.Equal(t, 6*time.Minute, wait(environ, auto))
	environ.Assign = append(environ.Assign, Assignment{Name: "wait", Text: "7m"})
	require.Equal(t, 7*time.Minute, wait(environ, auto))
}

func TestInstancesOfCountAndForEach(t *testing.T) {
	set, ds := one(`
resource "sluice_endpoint" "e" {
  for_each = toset(["us", "eu"])
  name     = "chat-${each.key}"
}
resource "sluice_deployment" "d" {
  count       = 2
  endpoint_id = sluice_endpoint.e["eu"].id
  name        = format("d%02d", count.index)
  autoscaling = { min_replicas = 1, max_replicas = 1 }
}
output "ids" { value = [for e in sluice_endpoint.e : e.name] }`)
	clean(t, ds)
	require.Equal(t, "chat-eu", set.Endpoints[0].Name.Value)
	require.Equal(t, `sluice_endpoint.e["eu"]`, set.Endpoints[0].Address.String())
	require.Equal(t, `${sluice_endpoint.e["eu"].id}`, set.Deployments[1].Endpoint.String())
	require.Equal(t, "d01", set.Deployments[1].Name.Value)
	require.Equal(t, `["chat-eu","chat-us"]`, set.Outputs[0].JSON)
}

func TestOrderFollowsReferencesAndNotTheText(t *testing.T) {
	set, ds := one(rolloutHead + "blue_green = {}\nsource_deployment_id = sluice_deployment.a.id\n}" + chat)
	clean(t, ds)
	var order []string
	for _, a := range set.Order {
		order = append(order, a.String())
	}
	require.Equal(t, []string{"sluice_endpoint.chat", "sluice_deployment.a", "sluice_deployment.b", "sluice_rollout.r"}, order)
}

func TestSensitiveValuesAreNotShown(t *testing.T) {
	set, ds := one(`
variable "s" {
  default   = "hunter2"
  sensitive = true
}
output "s" {
  value     = upper(var.s)
  sensitive = true
}`)
	clean(t, ds)
	require.True(t, set.Outputs[0].Sensitive)
	require.Empty(t, set.Outputs[0].JSON)
	_, ds = one("variable \"s\" {\n default = \"hunter2\"\n sensitive = true\n}\noutput \"s\" { value = var.s }")
	require.ErrorContains(t, ds.Err(), "shows a sensitive value")
}
