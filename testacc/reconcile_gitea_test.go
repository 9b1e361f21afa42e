package testacc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest/realgitea"
)

// giteaWorking is a working copy of a repository at a real Gitea.
type giteaWorking struct {
	t   *testing.T
	dir string
}

func (g *giteaWorking) git(args ...string) string {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "git", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := cmd.CombinedOutput()
	require.NoError(g.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// push commits files on a branch of the one that is checked out, and pushes it.
func (g *giteaWorking) push(branch string, files map[string]string) string {
	g.t.Helper()
	g.git("checkout", "-q", "-B", branch)
	for name, text := range files {
		path := filepath.Join(g.dir, name)
		require.NoError(g.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(g.t, os.WriteFile(path, []byte(text), 0o600))
	}
	g.git("add", "-A")
	g.git("commit", "-q", "-m", branch)
	g.git("push", "-q", "origin", branch)
	return g.git("rev-parse", "HEAD")
}

// The same story at a real Gitea: a pull request that was pushed with git gets its plan and
// its status, is merged there, and the comment follows the canary to its receipt.
func TestReconcileAtARealGitea(t *testing.T) {
	s := realgitea.Start(t)
	s.Repository(t)
	w := follow(t, fastEngine)
	w.secret("git", s.Token)
	w.secret("forge", s.Token)
	w.replace(fmt.Sprintf("%q", w.repo.URL()), fmt.Sprintf("%q", s.URL+"/acme/app.git"))
	w.replace("username      = \"robot\"\n    password_file = \"git\"", "token_file = \"git\"")
	text, err := os.ReadFile(w.config)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(text), "  forge \"github\" {")
	_, after, _ := strings.Cut(rest, "  }\n")
	w.write("sluice.hcl", before+fmt.Sprintf("  forge \"gitea\" {\n    url                 = %q\n    repository          = \"acme/app\"\n    token_file          = \"forge\"\n    webhook_secret_file = \"hook\"\n  }\n", s.URL)+after)

	g := &giteaWorking{t: t, dir: t.TempDir()}
	g.git("clone", "-q", s.CloneURL("ann"), ".")
	g.push("main", gitHouse())
	p := w.start()
	s.Subscribe(t, p.URL+"/hooks/models", "a secret between two machines")
	traffic := w.probed(60)
	require.True(t, assertSoon(soon, func() bool { return p.stack().Phase == "in step" }), "%+v", p.stack())

	comment := func() string {
		all := s.Comments(t, 1, forgetest.Self)
		require.LessOrEqual(t, len(all), 1, "one sticky comment")
		return strings.Join(all, "")
	}
	shows := func(texts ...string) {
		t.Helper()
		require.True(t, assertSoon(soon, func() bool {
			body := comment()
			for _, text := range texts {
				if !strings.Contains(body, text) {
					return false
				}
			}
			return true
		}), "the comment does not come to show %q:\n%s", texts, comment())
	}
	head := g.push("canary", gitHouse(gitCanary("cr_good", "2s", 10, 100)))
	require.Equal(t, 1, s.Propose(t, "ann", "canary"))
	shows("### ▶ Plan `", "for chat: 1 rollout, 2 created", "| 1 | 10% (+10) |", "**To apply:** merge")
	require.True(t, assertSoon(soon, func() bool { return len(s.Statuses(t, head)) == 1 }))
	require.Contains(t, s.Statuses(t, head)[0], "success plan ok: 1 rollout, 2 created")
	require.Empty(t, w.rollouts())

	merged := s.Script(t).Merge(1, "")
	began := time.Now()
	require.True(t, assertSoon(soon, func() bool { return len(w.rollouts()) == 1 }))
	t.Logf("the canary was made %s after the merge", time.Since(began).Round(time.Millisecond))
	shows("chat: completed", "all answered with 200", "**Receipt**")
	t.Logf("the comment at the end:\n%s", comment())
	require.Equal(t, []string{"COMPLETED"}, w.states())
	require.True(t, assertSoon(soon, func() bool {
		all := s.Statuses(t, merged)
		return len(all) > 0 && strings.HasPrefix(all[0], "success completed")
	}), "%v", s.Statuses(t, merged))
	require.LessOrEqual(t, len(s.Statuses(t, merged)), 15)
	tally := traffic()
	require.Zero(t, tally.Non200(), "%s", tally)
}
