package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
)

const rehearsed = "../../examples/rehearse"

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const rehearsable = `
variable "traffic" { default = 10 }
resource "sluice_endpoint" "chat" { name = "chat" }
resource "sluice_deployment" "old" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "old"
  model       = "m/old"
  autoscaling = { min_replicas = 1, max_replicas = 1 }
}
resource "sluice_deployment" "new" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "new"
  model       = "m/new"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
resource "sluice_rollout" "new" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.old.id
  target_deployment_id = sluice_deployment.new.id
  canary               = { steps = [{ traffic = var.traffic }, { traffic = 100 }] }
}
`

func TestARehearsalOfTheExampleParksWithExitThree(t *testing.T) {
	s := shell{t, nil}
	r := s.run("rehearse", rehearsed, "--facts", rehearsed+"/facts.yaml").exits(cli.ExitParked,
		"virtual time; nothing was touched; facts from "+rehearsed+"/facts.yaml", "health     +0:00   +3:57", "ends      +11:00", "METRIC_REGRESSION", "the gates need")
	require.Empty(t, r.errs)
	again := s.run("rehearse", rehearsed, "--facts", rehearsed+"/facts.yaml", "--seed", "1")
	require.Equal(t, r.out, again.out, "one seed is one output")
	s.run("rehearse", rehearsed+"/reverse", "--facts", rehearsed+"/reverse/facts.yaml").exits(cli.ExitOK, "+5:01", "completes")
	v := s.run("rehearse", rehearsed, "--facts", rehearsed+"/facts.yaml", "--json", "--fault", "cold-start-stuck", "--runs", "3").exits(cli.ExitParked).json()
	require.Equal(t, "TARGET_NOT_READY", v["forecast"].(map[string]any)["parked"].(map[string]any)["category"])
	require.Equal(t, true, v["virtual"])
	require.InDelta(t, 3.0, v["outlook"].(map[string]any)["runs"], 0)
	require.Equal(t, []any{"cold-start-stuck"}, v["faults"])
}

func TestRehearsalsThatCannotBeMeant(t *testing.T) {
	s := shell{t, nil}
	dir := folder(t, map[string]string{"main.tf": rehearsable, "facts.yaml": "request_rate: 5", "bad.yaml": "requestrate: 5", "bad.tfvars": "traffic = {"})
	facts := "--facts=" + dir + "/facts.yaml"
	_, rollout, _ := strings.Cut(rehearsable, `resource "sluice_rollout" "new"`)
	two := folder(t, map[string]string{"main.tf": rehearsable + `resource "sluice_rollout" "back"` + rollout})
	for _, c := range []struct {
		code int
		says string
		line []string
	}{
		{cli.ExitUsage, "give the folder", nil},
		{cli.ExitUsage, "no facts", []string{dir}},
		{cli.ExitUsage, "--runs", []string{dir, facts, "--runs", "0"}},
		{cli.ExitUsage, "there are replica-death", []string{dir, facts, "--fault", "flood"}},
		{cli.ExitUsage, "want name=value", []string{dir, facts, "--var", "traffic"}},
		{cli.ExitUsage, "none.tfvars", []string{dir, facts, "--var-file", dir + "/none.tfvars"}},
		{cli.ExitUsage, "goes alone", []string{dir, "--scenario", "x.txt"}},
		{cli.ExitUsage, "[scenario seed]", []string{"--scenario", "x.txt", "--seed", "2"}},
		{cli.ExitUsage, "sluice_rollout.new, sluice_rollout.back", []string{two, facts}},
		{cli.ExitUsage, "there is sluice_rollout.new", []string{dir, facts, "--address", "sluice_rollout.x"}},
		{cli.ExitFailed, "no-such-folder", []string{"no-such-folder", facts}},
		{cli.ExitFailed, "none.yaml", []string{dir, "--facts", dir + "/none.yaml"}},
		{cli.ExitFailed, "requestrate is not known here", []string{dir, "--facts", dir + "/bad.yaml"}},
		{cli.ExitFailed, "main.tf:20", []string{dir, facts, "--var", "traffic=101"}},
		{cli.ExitFailed, "bad.tfvars", []string{dir, facts, "--var-file", dir + "/bad.tfvars"}},
		{cli.ExitFailed, "no .tf files", []string{t.TempDir(), facts}},
		{cli.ExitFailed, "declares no sluice_rollout", []string{folder(t, map[string]string{"main.tf": `locals { x = 1 }`}), facts}},
		{cli.ExitFailed, "none.txt", []string{"--scenario", dir + "/none.txt"}},
		{cli.ExitFailed, "heading given", []string{"--scenario", dir + "/main.tf"}},
	} {
		r := s.run(append([]string{"rehearse"}, c.line...)...).exits(c.code, c.says)
		require.Empty(t, r.out, r.line)
		s.run(append([]string{"rehearse", "--json"}, c.line...)...).exits(c.code)
	}
	s.run("rehearse", two, facts, "--address", "sluice_rollout.back").exits(cli.ExitOK, "rehearsal of sluice_rollout.back")
	s.run("rehearse", dir, facts, "--var", "traffic=20", "--var", "traffic=40").exits(cli.ExitOK, "0% → 40%")
}

func TestAScenarioFileHoldsOrShowsWhereNot(t *testing.T) {
	s := shell{t, nil}
	demo := "../rehearsal/testdata/scenarios/demo.txt"
	s.run("rehearse", "--scenario", demo).exits(cli.ExitOK, "+11:00")
	text, err := os.ReadFile(demo)
	require.NoError(t, err)
	dir := folder(t, map[string]string{"other.txt": strings.ReplaceAll(string(text), "+11:00", "+10:00")})
	s.run("rehearse", "--scenario", dir+"/other.txt").exits(cli.ExitFailed, "- +10:00", "+ +11:00")
	v := s.run("rehearse", "--scenario", dir+"/other.txt", "--json")
	require.Equal(t, false, v.json()["holds"])
}

// The engine tells what stands; the file tells the rest and wins; an engine that is gone
// leaves the file.
func TestLiveFactsOfAnEngine(t *testing.T) {
	s := served(t)
	before := folder(t, map[string]string{"main.tf": rehearsable, "facts.yaml": "request_rate: 5"})
	s.run("rehearse", before, "--facts", before+"/facts.yaml").exits(0, "the endpoint does not stand yet")
	s.run("deploy", "m/old", "--endpoint", "chat", "--traffic-weight", "1", "--min-replicas", "2", "--max-replicas", "3").exits(0)
	s.run("deploy", "m/new", "--endpoint", "chat", "--min-replicas", "0", "--max-replicas", "0").exits(0)
	dir := folder(t, map[string]string{"main.tf": rehearsable, "facts.yaml": "{request_rate: 5, deployments: {new: {cold_start: 1m}}}"})
	r := s.run("rehearse", dir).exits(0, "facts from the engine at http://", "cold_start of sluice_deployment.new is not known: all of its budget of ", "both sides are assumed equal", "requests  0")
	require.Contains(t, r.out, "target 2", "two replicas stand, where the declaration has one")
	r = s.run("rehearse", dir, "--facts", dir+"/facts.yaml").exits(0, "facts.yaml, then the engine at http://", "+1:00")
	require.NotContains(t, r.out, "cold_start of sluice_deployment.new")

	model := map[string]any{"model": "demo/chat", "messages": []any{map[string]any{"role": "user", "content": "hello"}}}
	for range 25 {
		post(t, s.env["GATEWAY"]+"/v1/chat/completions", model)
	}
	r = s.run("rehearse", dir).exits(0, "the latency of sluice_deployment.new is not known: both sides are assumed equal")
	require.NotContains(t, r.out, "latencies are not known")
	require.NotContains(t, r.out, "requests  0 ")
	s.run("ls").exits(0, "demo/chat")

	read := folder(t, map[string]string{"main.tf": `data "sluice_endpoint" "chat" { name = "chat" }
resource "sluice_rollout" "new" {
  endpoint_id          = data.sluice_endpoint.chat.id
  target_deployment_id = "dep_new"
  blue_green           = {}
}`})
	s.run("rehearse", read).exits(cli.ExitFailed, "--var endpoint_id=ep_")

	s.run("rollout", "new", "--canary", "--steps", "10,100", "--interval", "30m").exits(0)
	s.run("rehearse", dir, "--facts", dir+"/facts.yaml").exits(0, "holds the endpoint")

	gone := shell{t, map[string]string{"SLUICE_ENGINE_URL": "http://127.0.0.1:1", "SLUICE_API_KEY": "k"}}
	gone.run("rehearse", dir).exits(cli.ExitFailed, "no engine answers")
	gone.run("rehearse", dir, "--facts", dir+"/facts.yaml").exits(0, "was asked in vain", "only the file counts")
}

func post(t *testing.T, url string, body any) {
	t.Helper()
	b, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(b))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestAnInterruptedRehearsalEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := cli.Run(ctx, cli.Env{Args: []string{"rehearse", rehearsed, "--facts", rehearsed + "/facts.yaml", "--runs", "10000"}, Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs.String(), "interrupted")
}
