package reconciler

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// previews are the calls since n that asked what a rollout would find.
func (w *stage) previews(n int) int {
	count := 0
	for _, c := range w.calls[n:] {
		if strings.Contains(c.Path, "preview") {
			count++
		}
	}
	return count
}

// priced writes a policy that allows an overlap of so many cents.
func priced(t *testing.T, cents string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"plan.rego", "price.rego"} {
		text, err := os.ReadFile(filepath.Join("..", "examples", "policy", "rego", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	limits := `{"limits": {"overlap_cost_cents": ` + cents + `, "approval_above_cents": 1e9, "approval_override": []}}`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "data.json"), []byte(limits), 0o600))
	return folder
}

// The comment of a plan shows the GPUs at the peak, those that are free and what the
// overlap costs, and the policy judges by the same: within its ceiling the rollout is
// allowed, and above it it is not.
func TestAPullRequestShowsAndIsJudgedByWhatItsRolloutTakes(t *testing.T) {
	for name, c := range map[string]struct {
		cents  string
		status forge.StatusState
		says   string
	}{
		"within the ceiling": {cents: "5000", status: forge.Success},
		"above the ceiling":  {cents: "1", status: forge.Failure, says: "both sides at once cost"},
	} {
		t.Run(name, func(t *testing.T) {
			w, git, f := reviewed(t)
			w.repository("models").Policies = []PolicyConfig{{Path: priced(t, c.cents)}}
			w.begin()
			pull := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			require.NoError(t, w.pass())
			text := pull.comment()
			require.Contains(t, text, "needs 4 GPUs at peak, 2 more than now, 1998 free")
			require.Contains(t, text, "peak GPUs")
			require.Regexp(t, `GPU-hours more at most, \d+\.\d\d USD`, text)
			require.NotContains(t, text, "price is not known")
			require.Contains(t, text, c.says)
			statuses := f.Statuses(git.heads["refs/heads/canary"])
			require.Len(t, statuses, 1)
			require.Equal(t, c.status, statuses[0].State, statuses[0].Text)
		})
	}
}

// An engine is asked what a rollout would find only for one that a plan makes: not at
// rest, not while it runs, not for the plan of a change without a rollout, and once a plan.
func TestOnlyARolloutThatAPlanMakesIsLookedAheadFor(t *testing.T) {
	w, git, f := reviewed(t)
	n := len(w.calls)
	w.passes(2*time.Hour, time.Minute)
	require.Zero(t, w.previews(n), "at rest")
	w.propose(git, f, "bounds", map[string]string{"prod/main.tf": strings.Replace(canaryHouse("chat"), "max_replicas = 4", "max_replicas = 5", 1)})
	require.NoError(t, w.pass())
	require.Zero(t, w.previews(n), "a plan without a rollout")
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(2*time.Hour, time.Minute)
	require.Equal(t, 1, w.previews(n), "once for one plan, however often its comment is looked at")
	c.merge()
	w.advance(time.Minute)
	w.until("it runs", 10*time.Minute, w.phase(RollingOut))
	n = len(w.calls)
	w.passes(5*time.Minute, time.Minute)
	require.Zero(t, w.previews(n), "while it runs")
}

// A plan is not denied for want of facts when the engine fails to tell them: the pass
// fails, and the next one judges.
func TestAnEngineThatFailsToPreviewDelaysTheVerdict(t *testing.T) {
	w, git, f := reviewed(t)
	w.repository("models").Policies = []PolicyConfig{{Path: priced(t, "5000")}}
	w.begin()
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.fault = func(req *http.Request) error {
		if strings.Contains(req.URL.Path, "preview") {
			return errors.New("connection reset")
		}
		return nil
	}
	require.Error(t, w.pass())
	require.Empty(t, f.Statuses(git.heads["refs/heads/canary"]))
	w.fault = nil
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	require.Contains(t, c.comment(), "1998 free")
	require.Equal(t, forge.Success, f.Statuses(git.heads["refs/heads/canary"])[0].State)
}
