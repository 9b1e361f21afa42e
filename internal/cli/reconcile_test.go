package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
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
