package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/cli"
)

// The configurations of examples/reconcile are taken as they stand; what is warned of is
// only that secrets are not on this machine.
func TestTheReconcilersExamplesAreTaken(t *testing.T) {
	s := shell{t, map[string]string{}}
	examples := filepath.Join("..", "..", "examples", "reconcile")
	for name, says := range map[string]string{"minimal.hcl": "1 repository, 1 stack", "sluice.hcl": "1 repository, 2 stacks"} {
		r := s.run("reconcile", "--config", filepath.Join(examples, name), "--check").exits(0, says)
		for _, m := range regexp.MustCompile(`(?m)^warning: (.*)`).FindAllStringSubmatch(r.errs, -1) {
			if !regexp.MustCompile(`^The (secret's file cannot be read|environment variable [A-Z_]+ is not set) here`).MatchString(m[1]) {
				t.Errorf("%s: %s", name, m[1])
			}
		}
	}
}

// Somebody who has just read the help is told what is missing, by its name.
func TestAReconcilersDoorSaysWhatIsMissing(t *testing.T) {
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/healthz":
			_, _ = io.WriteString(w, "ok\n")
		case "/readyz":
			http.Error(w, "standing by", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": "the key is not known"}`)
		}
	}))
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer door.Close()
	none, there := shell{t, map[string]string{}}, shell{t, map[string]string{"SLUICE_RECONCILER_URL": door.URL}}
	none.run("reconcile").exits(cli.ExitUsage, "--config FILE, or --repository URL")
	none.run("reconcile", "--once").exits(cli.ExitFailed, "--config FILE, or --repository URL")
	none.run("reconcile", "health").exits(cli.ExitUsage, "SLUICE_RECONCILER_URL")
	none.run("reconcile", "health", "--reconciler", "127.0.0.1:8090").exits(cli.ExitUsage, "reconciler address", "http://127.0.0.1:8090")
	there.run("reconcile", "health").exits(0, "ok")
	there.run("reconcile", "health", "--ready").exits(cli.ExitFailed, "503", "standing by")
	there.run("reconcile", "status").exits(cli.ExitUsage, "SLUICE_RECONCILER_KEY")
	there.run("reconcile", "status", "--key", "x").exits(cli.ExitFailed, "401", "the key is not known")
	for _, words := range []string{"override models/prod first_step", "reverse models/prod"} {
		line := append(append([]string{"reconcile"}, strings.Fields(words)...), "--key", "x")
		there.run(line...).exits(cli.ExitUsage, "say why", `--reason "why"`)
		there.run(append(line, "--reason", " ")...).exits(cli.ExitUsage, "say why")
		there.run(append(line, "--reason", "it must")...).exits(cli.ExitFailed, "401")
	}
	for _, verb := range []string{"resume", "continue", "suspend"} {
		there.run("reconcile", verb, "prod", "--key", "x").exits(cli.ExitUsage, "REPOSITORY/STACK")
	}
	help := none.run("reconcile", "--help").exits(0, "SLUICE_RECONCILER_URL", "exit codes 0", "health")
	require.NotContains(t, help.out, "true|false")
}

// A flag that would be ignored is refused, and so is a word that is no verb.
func TestAReconcilersCommandLineIsTakenOrRefused(t *testing.T) {
	s := shell{t, map[string]string{"SLUICE_RECONCILER_URL": "http://127.0.0.1:1", "SLUICE_RECONCILER_KEY": "x"}}
	file := []string{"reconcile", "--config", "sluice.hcl"}
	for _, name := range []string{"--state", "--branch", "--folder", "--token-env", "--ssh-key", "--known-hosts"} {
		s.run(append(file, name, "x")...).exits(cli.ExitUsage, name+" with --config would be ignored")
	}
	s.run(append(file, "--state", "x", "--branch", "y")...).exits(cli.ExitUsage, "--branch, --state with --config")
	s.run(append(file, "--once", "--folder", "x")...).exits(cli.ExitFailed, "--folder with --config")
	s.run(append(file, "--repository", "x")...).exits(cli.ExitUsage, "--config and --repository are both given")
	s.run(append(file, "--wait")...).exits(cli.ExitUsage, "--wait goes with --once")
	s.run(append(file, "--once", "--within", "1m")...).exits(cli.ExitFailed, "--within goes with --wait")
	s.run("reconcile", "statsu").exits(cli.ExitUsage, `no command "statsu"`, `did you mean "status"?`)
	s.run("reconcile", "diff").exits(cli.ExitUsage, "takes REPOSITORY/STACK, and 0 words are given: for example sluice reconcile diff models/prod")
	s.run("reconcile", "approve", "models/prod").exits(cli.ExitUsage, "takes REPOSITORY/STACK DIGEST, and 1 word is given")
	s.run("reconcile", "now").exits(cli.ExitUsage, "takes REPOSITORY, and")
	s.run("reconcile", "drift", "prod").exits(cli.ExitUsage, "REPOSITORY/STACK, for example models/prod")
}

// Twenty commands in one list told nobody where to begin.
func TestHelpIsOrderedByWhatPeopleWant(t *testing.T) {
	help := shell{t, map[string]string{}}.run("help").exits(0).out
	last := -1
	for _, line := range []string{"From files and from Git:\n", "\n  plan ", "\n  reconcile ", "At an engine:\n", "\n  rollout ", "To run an engine, and to try it:\n", "\n  serve "} {
		at := strings.Index(help, line)
		require.Greater(t, at, last, "%q is not where it should be:\n%s", line, help)
		last = at
	}
}

// What is only warned of does not hinder, and is not nothing either.
func TestACheckOfTheConfigurationCountsWhatItWarnsOf(t *testing.T) {
	s := shell{t, map[string]string{}}
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const rest = `
engine { url = "https://engine.example.com" }
repository "models" {
  url = "https://git.example.com/models.git"
  stack "prod" {}
}
`
	good := write("good.hcl", rest)
	s.run("reconcile", "--config", good, "--check").exits(0, "good.hcl: nothing is wrong; 1 repository, 1 stack\n")
	warned := write("warned.hcl", rest+`
freeze "over" {
  from  = "2025-12-24T00:00:00Z"
  until = "2026-01-02T00:00:00Z"
}
notify "hook" {
  kind    = "webhook"
  url_env = "THERE_IS_NO_SUCH_VARIABLE"
}
`)
	r := s.run("reconcile", "--config", warned, "--check").exits(0, "warned.hcl: it can be used, with 3 warnings; 1 repository, 1 stack\n", `freeze "over" is over`)
	require.NotContains(t, r.out, "nothing is wrong")

	r = s.run("--json", "reconcile", "--config", warned, "--check").exits(0)
	require.Empty(t, r.errs, "it stands in the JSON")
	found := r.json()
	require.Equal(t, true, found["taken"])
	require.Empty(t, found["mistakes"])
	require.Len(t, found["warnings"], 3)
	require.Contains(t, r.out, `"summary": "freeze \"over\" is over"`)

	bad := write("bad.hcl", strings.Replace(rest, `stack "prod"`, `stak "prod"`, 1))
	for _, line := range [][]string{{"--check"}, {}, {"--once"}} {
		r = s.run(append([]string{"--json", "reconcile", "--config", bad}, line...)...).exits(cli.ExitFailed)
		require.Empty(t, r.errs)
		found = r.json()
		require.Equal(t, false, found["taken"])
		mistakes := found["mistakes"].([]any)
		require.Len(t, mistakes, 2)
		require.Equal(t, map[string]any{"file": bad, "line": 5.0, "column": 3.0, "summary": `Unknown block "stak" in repository "models"`, "hint": `did you mean "stack"?`}, mistakes[1])
	}
	s.run("reconcile", "--config", bad, "--check").exits(cli.ExitFailed, `did you mean "stack"?`, "error: the configuration is not taken")
}

// A question that nobody answers ends its line, so that what follows has one of its own.
func TestAQuestionThatNobodyAnswersEndsItsLine(t *testing.T) {
	nobody, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = nobody.Close() }()
	if !cli.Terminal(nobody) {
		t.Skip("the null device is no device here")
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	_, err = cli.AskOn(nobody, out)("Apply? ")
	require.ErrorIs(t, err, io.EOF)
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.Equal(t, "Apply? \n", string(text))
}
