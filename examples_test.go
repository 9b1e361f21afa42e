package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
)

// githubScripts are what a workflow runs, by its jobs.
func githubScripts(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(page(t, "examples/reconcile/github-actions/plan-and-apply.yml")), &file))
	out := map[string]string{}
	for name, job := range file.Jobs {
		for _, step := range job.Steps {
			out[name] += step.Run
		}
	}
	return out
}

func gitlabScripts(t *testing.T) (scripts map[string]string, amber map[string][]int) {
	t.Helper()
	var file map[string]struct {
		Script       []string
		AllowFailure struct {
			Codes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(page(t, "examples/reconcile/gitlab-ci/.gitlab-ci.yml")), &file))
	scripts, amber = map[string]string{}, map[string][]int{}
	for name, job := range file {
		scripts[name], amber[name] = strings.Join(job.Script, "\n"), job.AllowFailure.Codes
	}
	return scripts, amber
}

// ranBy runs a pipeline's script with a sluice that ends with a code, and returns its own
// code and what it said.
func ranBy(t *testing.T, script string, code int) (int, string) {
	t.Helper()
	dir := t.TempDir()
	fake := fmt.Sprintf("#!/bin/sh\necho \"asked: $*\"\nexit %d\n", code)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sluice"), []byte(fake), 0o700)) //nolint:gosec // it is run
	sh := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
	sh.Dir = dir
	sh.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"))
	out, err := sh.CombinedOutput()
	if err != nil {
		require.NotNil(t, sh.ProcessState, "%v", err)
	}
	return sh.ProcessState.ExitCode(), string(out)
}

// A pipeline is green when all is done, goes on when a rollout is under way, and is red
// when one is parked or something failed. Its commands are ones that sluice takes.
func TestPipelinesTreatTheExitCodes(t *testing.T) {
	github := githubScripts(t)
	gitlab, amber := gitlabScripts(t)
	for _, code := range []int{0, 1, 2, 3} {
		got, said := ranBy(t, github["apply"], code)
		require.Equal(t, map[int]int{0: 0, 1: 1, 2: 0, 3: 3}[code], got, said)
		require.Contains(t, said, map[int]string{0: "asked:", 1: "asked:", 2: "::warning", 3: "::error"}[code])
		got, said = ranBy(t, gitlab["apply"], code)
		require.Equal(t, code, got, said)
		got, said = ranBy(t, github["plan"], code)
		require.Equal(t, code, got, said)
		got, said = ranBy(t, gitlab["plan"], code)
		require.Equal(t, code, got, said)
	}
	require.Equal(t, []int{2}, amber["apply"])
	require.Empty(t, amber["plan"])
	for _, script := range []string{github["apply"], github["plan"], gitlab["apply"], gitlab["plan"]} {
		_, said := ranBy(t, script, 0)
		asked := regexp.MustCompile(`asked: (.*)`).FindStringSubmatch(said)
		require.NotNil(t, asked, said)
		code, errs := sluice(t, nil, append(strings.Fields(asked[1]), "--help")...)
		require.Zero(t, code, errs)
		code, errs = sluice(t, nil, strings.Fields(asked[1])...) // the folder is not here, and no flag is unknown
		require.NotZero(t, code)
		require.NotContains(t, errs, "unknown")
	}
}

// sluice runs the command in this process.
func sluice(t *testing.T, env map[string]string, args ...string) (int, string) {
	t.Helper()
	var errs bytes.Buffer
	code := cli.Run(context.WithoutCancel(t.Context()), cli.Env{Args: args, Out: io.Discard, Err: &errs, Getenv: func(k string) string { return env[k] }, Version: "test"})
	return code, errs.String()
}

// A plan that fails is the one whose summary is read.
func TestAPipelinesPlanIsInTheSummaryAlsoWhenItFails(t *testing.T) {
	for _, code := range []int{0, 1} {
		trap := `trap 'echo "summary: $(cat "$GITHUB_STEP_SUMMARY")"' EXIT` + "\n"
		got, said := ranBy(t, trap+githubScripts(t)["plan"], code)
		require.Equal(t, code, got, said)
		require.Contains(t, said, "summary: ```\nasked: plan prod\n```")
	}
}

// What a comment says to write into the configuration is what a configuration takes.
func TestConfigurationsInCommentsAreTaken(t *testing.T) {
	for _, name := range []string{"systemd/sluice-reconcile.service", "container/Containerfile"} {
		var lines []string
		for _, m := range regexp.MustCompile(`(?m)^#   ((?:\w+ \{|  \w+ += .*|\}))$`).FindAllStringSubmatch(page(t, "examples/reconcile/"+name), -1) {
			lines = append(lines, m[1])
		}
		text := strings.Join(lines, "\n") + "\n"
		require.Contains(t, text, "state {\n  path ", name)
		require.NotContains(t, page(t, "examples/reconcile/"+name), "state { path", "HCL takes one attribute on a line")
		file := filepath.Join(t.TempDir(), "sluice.hcl")
		rest := "repository \"models\" {\n  url = \"https://git.example.com/acme/models.git\"\n  stack \"prod\" {}\n}\n"
		if !strings.Contains(text, "engine {") {
			rest += "engine {\n  url = \"https://engine.example.com\"\n}\n"
		}
		require.NoError(t, os.WriteFile(file, []byte(text+rest), 0o600))
		code, errs := sluice(t, nil, "reconcile", "--config", file, "--check")
		require.Zero(t, code, "%s:\n%s\n%s", name, text, errs)
		require.NotContains(t, errs, "error")
	}
}

func TestTheSystemdUnitIsTaken(t *testing.T) {
	unit := page(t, "examples/reconcile/systemd/sluice-reconcile.service")
	for _, must := range []string{"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "StateDirectory=sluice-reconcile"} {
		require.Contains(t, unit, "\n"+must+"\n")
	}
	for _, m := range regexp.MustCompile(`(?m)^ExecStart(?:Pre)?=/usr/local/bin/sluice (.*)$`).FindAllStringSubmatch(unit, -1) {
		_, errs := sluice(t, nil, strings.Fields(m[1])...)
		require.NotContains(t, errs, "unknown")
		require.Contains(t, errs, "/etc/sluice/sluice.hcl", "it is read, and not here")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not there")
	}
	here, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "sluice-reconcile.service")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(unit, "/usr/local/bin/sluice", here)), 0o600))
	out, err := exec.CommandContext(t.Context(), analyze, "verify", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
	out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput()
	require.NoError(t, err, "more is open than should be: %s", out)
}

// The container's command and its health check are ones that the binary takes; it is
// nobody's root and pulls no image.
func TestTheContainerFileRunsWhatItSays(t *testing.T) {
	file := page(t, "examples/reconcile/container/Containerfile")
	line := func(keyword string) string {
		m := regexp.MustCompile(`(?m)^`+keyword+` (.*)$`).FindAllStringSubmatch(file, -1)
		require.Len(t, m, 1, keyword)
		return m[0][1]
	}
	require.Equal(t, "scratch", line("FROM"))
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, line("USER"))
	require.Equal(t, `["/sluice"]`, line("ENTRYPOINT"))
	words := func(text string) (out []string) {
		require.NoError(t, json.Unmarshal([]byte(text), &out), text)
		return out
	}
	_, errs := sluice(t, nil, words(line("CMD"))...)
	require.Contains(t, errs, "/etc/sluice/sluice.hcl", "it is read, and not here")
	require.NotContains(t, errs, "unknown")

	_, check, ok := strings.Cut(line("HEALTHCHECK"), " CMD ")
	require.True(t, ok)
	healthy := words(check)
	require.Equal(t, "/sluice", healthy[0])
	require.Contains(t, line("ENV"), "SLUICE_RECONCILER_URL=http://127.0.0.1:"+line("EXPOSE")+" ")
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/healthz" {
			http.NotFound(w, req)
		}
	}))
	code, errs := sluice(t, map[string]string{"SLUICE_RECONCILER_URL": door.URL}, healthy[1:]...)
	require.Zero(t, code, errs)
	door.Close()
	code, _ = sluice(t, map[string]string{"SLUICE_RECONCILER_URL": door.URL}, healthy[1:]...)
	require.Equal(t, cli.ExitFailed, code)
}
