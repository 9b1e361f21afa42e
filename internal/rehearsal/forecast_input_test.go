package rehearsal

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

func TestFaultsThatCannotBeMeantAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                        "want name",
		"earthquake":              "there are replica-death, cold-start-stuck",
		"replica-death@2":         "want name",
		"replica-death@step0":     "steps from 1",
		"replica-death=both":      "replica-death[=target|=source][@stepN]",
		"cold-start-stuck@step1":  "want cold-start-stuck",
		"cold-start-stuck=1":      "takes no value",
		"cold-start-slow":         "cold-start-slow=20m",
		"cold-start-slow=-1m":     "cold-start-slow=20m",
		"cold-start-slow=9999h":   "cold-start-slow=20m",
		"capacity":                "capacity=N",
		"capacity=-1":             "capacity=N",
		"capacity=many":           "capacity=N",
		"slow-target=50":          "slow-target=+50%",
		"slow-target=-100%":       "slow-target=+50%",
		"slow-target=NaN%":        "slow-target=+50%",
		"target-errors=101%":      "target-errors=5%",
		"crash@step99999":         "want name",
		"crash@step1@step2":       "want name",
		"metrics-gap=1m":          "takes no value",
		strings.Repeat("x", 4000): "there are",
	} {
		_, err := ParseFault(text)
		assert.ErrorContains(t, err, says, text)
	}
	for _, k := range FaultKinds() {
		name, _, _ := strings.Cut(strings.ReplaceAll(k.Form, "=N", "=1"), "[")
		_, err := ParseFault(name)
		assert.NoError(t, err, k.Form)
		assert.NotEmpty(t, k.Does)
	}
}

func TestCurves(t *testing.T) {
	for text, want := range map[string]string{
		"734.2ms":               "734.2ms",
		"lognormal(448ms,0.3)":  "lognormal(448ms,0.3)",
		"p50=448ms p95=734ms":   "lognormal(448ms,0.300158)",
		" p50=448ms, p99=734ms": "lognormal(448ms,0.212228)",
		"p50=1s p90=1s":         "lognormal(1s,0)",
	} {
		c, err := ParseCurve(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, c.String(), text)
	}
	for _, bad := range []string{"p95=1s", "p50=2s p95=1s", "p50=0s p95=1s", "p50=1s p96=2s", "p50=1s p95=2s p99=3s", "p50 p95", "fast", "lognormal(1s)", "-5s", "p50=1ns p99=9999h"} {
		_, err := ParseCurve(bad)
		assert.Error(t, err, bad)
	}
}

func TestFactsThatCannotBeAreRefusedByTheirPlace(t *testing.T) {
	for text, says := range map[string]string{
		"request_rate: fast":                                  "line 1",
		"request_rate: -1":                                    "request_rate",
		"request_rate: .nan":                                  "request_rate",
		"requestrate: 1":                                      "line 1: field requestrate is not known here",
		"deployments: {a: {replica: 1}}":                      "field replica is not known here",
		"deployments: {a: {replicas: -1}}":                    "deployments.a.replicas",
		"deployments: {a: {max_replicas: 100000}}":            "deployments.a.max_replicas",
		"deployments: {a: {share: 101}}":                      "deployments.a.share",
		"deployments: {a: {error_rate: 2}}":                   "deployments.a.error_rate",
		"deployments: {a: {latency: quick}}":                  "quick",
		"deployments: {a: {drain: -4s}}":                      "deployments.a.drain",
		"deployments: {a: {cold_start_budget: 1000h}}":        "deployments.a.cold_start_budget",
		"hardware: {h: {capacity: 1, free: 1}}":               "not both",
		"hardware: {h: {gpus: -8}}":                           "hardware.h.gpus",
		"timings: {propagation: -1s}":                         "timings",
		"timings: {propagation: soon}":                        "line 1",
		"timings: {propagatoin: 1s}":                          "not known here",
		"request_rate: 1\n---\nrequest_rate: 2":               "one document",
		"[1, 2]":                                              "line 1",
		"a: &a [*a]":                                          "not known here",
		"\x00":                                                "",
		"request_rate: 1\n" + strings.Repeat(" ", MaxFacts+1): "larger",
	} {
		_, err := ParseFacts([]byte(text))
		assert.ErrorContains(t, err, says, text[:min(len(text), 60)])
		if err != nil {
			assert.NotContains(t, err.Error(), "rehearsal.", text[:min(len(text), 60)])
		}
	}
	for _, text := range []string{"", "# nothing", "timings: {propagation: 2s}"} {
		_, err := ParseFacts([]byte(text))
		require.NoError(t, err, text)
	}
}

func TestWhatIsToldLaterWins(t *testing.T) {
	base, err := ParseFacts([]byte("request_rate: 1\ndeployments: {a: {replicas: 2, share: 90, hardware: h}, b: {replicas: 1}}\nhardware: {h: {capacity: 4, gpus: 8}}\ntimings: {propagation: 2s, ingestion_lag: 3s}"))
	require.NoError(t, err)
	base.From = "the engine"
	top, err := ParseFacts([]byte("deployments: {a: {replicas: 3, latency: 1s}}\nhardware: {h: {free: 1}}\ntimings: {ingestion_lag: 9s}"))
	require.NoError(t, err)
	top.From = "facts.yaml"
	got := top.Over(base)
	assert.Equal(t, "facts.yaml, then the engine", got.From)
	assert.InDelta(t, 1.0, *got.RequestRate, 0)
	a := got.Deployments["a"]
	assert.Equal(t, []any{3, 90, "h", "1s"}, []any{*a.Replicas, *a.Share, a.Hardware, a.Latency.String()})
	assert.Equal(t, 1, *got.Deployments["b"].Replicas)
	assert.Equal(t, 1, *got.Hardware["h"].Free)
	assert.Nil(t, got.Hardware["h"].Capacity)
	assert.Equal(t, 8, *got.Hardware["h"].GPUs)
	assert.Equal(t, 2*time.Second, got.InEffect().Propagation)
	assert.Equal(t, 9*time.Second, got.InEffect().IngestionLag)
	assert.Equal(t, 2, *base.Deployments["a"].Replicas, "what lies below is left alone")
	told := wire.TimingsToAPI(rollout.DefaultTimings())
	told.Propagation = api.Duration(7 * time.Second)
	assert.Equal(t, 7*time.Second, Facts{Timings: TimingsOf(told)}.InEffect().Propagation)
}

const declared = `
resource "sluice_endpoint" "chat" { name = "chat" }
resource "sluice_deployment" "a" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "old"
  model       = "m/a"
  autoscaling = { min_replicas = 2, max_replicas = 3 }
}
resource "sluice_deployment" "b" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "new"
  model       = "m/b"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
resource "sluice_rollout" "r" {
  endpoint_id          = sluice_endpoint.chat.id
  target_deployment_id = sluice_deployment.b.id
  rolling              = {}
}
`

func planned(t *testing.T, hcl, facts string) (Plan, []string, error) {
	t.Helper()
	set, found := declaration.LoadFiles([]declaration.File{{Name: "main.tf", Bytes: []byte(hcl)}}, declaration.Options{})
	require.NoError(t, found.Err())
	f, err := ParseFacts([]byte(facts))
	require.NoError(t, err)
	return PlanOf(set, set.Rollouts[0], f)
}

func TestAPlanOfLittleKnowledgeSaysWhatItAssumes(t *testing.T) {
	p, assumed, err := planned(t, declared, "request_rate: 3")
	require.NoError(t, err)
	assert.Equal(t, "sluice_deployment.a", p.Source.Name, "the one that serves")
	assert.Equal(t, []int{2, 100, 0, 0}, []int{p.Source.Replicas, p.Source.Share, p.Target.Replicas, p.Target.Share})
	assert.Equal(t, rollout.Bounds{Min: 2, Max: 3}, p.Source.Bounds)
	assert.Equal(t, "chat", p.Endpoint)
	require.Len(t, assumed, 3)
	assert.Contains(t, assumed[2], "both sides are assumed equal")
	f := foretold(t, p, 1)
	assert.Equal(t, "COMPLETED", f.State)

	_, assumed, err = planned(t, declared, "{request_rate: 3, deployments: {old: {latency: 1s, cold_start: 1m}, sluice_deployment.b: {cold_start: 1m}}}")
	require.NoError(t, err)
	assert.Equal(t, []string{"the latency of sluice_deployment.b is not known: both sides are assumed equal"}, assumed)
}

func TestPlansThatCannotBeAreRefused(t *testing.T) {
	for facts, says := range map[string]string{
		"": "request_rate is not known",
		"{request_rate: 1, deployments: {olb: {}}}":                                                          `no deployment "olb" is declared; there are new, old, sluice_deployment.a, sluice_deployment.b`,
		"{request_rate: 1, deployments: {old: {replicas: 5}}}":                                               "outside the bounds 2..3",
		"{request_rate: 1, deployments: {old: {min_replicas: 4}}}":                                           "bounds 4..3",
		"{request_rate: 1, deployments: {old: {replicas: 0, min_replicas: 0}}}":                              "cannot be inferred, 0 other",
		"{request_rate: 1, deployments: {new: {share: 10}}}":                                                 "a share of 10 % without a replica",
		"{request_rate: 1, deployments: {old: {share: 80}, new: {share: 10, replicas: 1, max_replicas: 1}}}": "must add up to 100",
		"{request_rate: 1, deployments: {old: {hardware: x}}, hardware: {h: {free: 1}}}":                     `hardware "x" is not among h`,
		"{request_rate: 1, deployments: {old: {hardware: h}}, hardware: {h: {capacity: 1}}}":                 "room for 1 replica(s), and 2 run there",
	} {
		_, _, err := planned(t, declared, facts)
		assert.ErrorContains(t, err, says, facts)
	}
	other := strings.Replace(declared, "sluice_deployment.b.id", `"dep_x"`, 1)
	_, _, err := planned(t, other, "request_rate: 1")
	require.ErrorContains(t, err, "dep_x is not declared here")
	p, _, err := planned(t, other, "{request_rate: 1, deployments: {dep_x: {replicas: 0}}}")
	require.NoError(t, err)
	require.Equal(t, "dep_x", p.Target.Name)
}

func TestAScenarioThatDoesNotHoldShowsTheDifference(t *testing.T) {
	text := "given\n  source: 1 ready\n  target: stopped; cold start 1m\n  rollout: blue-green\nwhen\n  +0:00 start\n"
	free, err := PlayScenario(t.Context(), text)
	require.NoError(t, err)
	require.True(t, free.Holds, "it expects nothing")
	whole := text + "then\n  " + strings.Join(free.Transcript, "\n  ") + "\n"
	same, err := PlayScenario(t.Context(), whole)
	require.NoError(t, err)
	require.True(t, same.Holds)
	require.Empty(t, same.Diff)
	other, err := PlayScenario(t.Context(), strings.Replace(whole, "COMPLETED", "CANCELED", 1))
	require.NoError(t, err)
	require.False(t, other.Holds)
	var changed []string
	for _, line := range other.Diff {
		if line[0] != ' ' {
			changed = append(changed, line)
		}
	}
	require.Len(t, changed, 2)
	require.Contains(t, changed[0], "CANCELED")
	require.Contains(t, changed[1], "COMPLETED")
	var b strings.Builder
	require.NoError(t, other.Write(&b))
	require.Contains(t, b.String(), changed[0]+"\n"+changed[1])
	for _, bad := range []string{"", "when\n  start\n", "given\n  dragons: 3\nwhen\n", "nonsense"} {
		_, err := PlayScenario(t.Context(), bad)
		require.Error(t, err, bad)
	}
}

func TestDifferences(t *testing.T) {
	assert.Equal(t, []string{"  a", "- b", "  c", "+ d"}, difference([]string{"a", "b", "c"}, []string{"a", "c", "d"}))
	assert.Equal(t, []string{"+ a"}, difference(nil, []string{"a"}))
	assert.Empty(t, difference([]string{"a"}, []string{"a"}))
}

func FuzzFaultsAndFacts(f *testing.F) {
	f.Add("replica-death@step2", "request_rate: 5\ndeployments: {a: {latency: p50=1s p95=2s}}")
	f.Fuzz(func(t *testing.T, fault, facts string) {
		_, _ = ParseFault(fault)
		if got, err := ParseFacts([]byte(facts)); err == nil {
			_ = got.InEffect()
			_ = got.Over(got)
		}
		_, _ = ParseCurve(fault)
	})
}
