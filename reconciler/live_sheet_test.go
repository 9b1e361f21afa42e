package reconciler

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A merged change that has not begun is not told as applied: what it waits for heads the
// comment.
func TestAMergedChangeThatWaitsIsNotToldAsApplied(t *testing.T) {
	w, git, f := reviewed(t)
	w.ask("keeper", "suspend", `{"id":"1","reason":"audit"}`, http.StatusAccepted)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(2*time.Minute, time.Minute)
	c.merge()
	w.advance(time.Minute)
	w.passes(3*time.Minute, time.Minute)
	require.Contains(t, c.comment(), "### ○ Waits: suspended by keeper")
	require.NotContains(t, c.comment(), "Applied")
}

// A merge that a newer commit takes back before anybody has looked is told as overtaken.
func TestAMergeThatIsOvertakenUnseenSaysSo(t *testing.T) {
	w, git, f := reviewed(t)
	c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	w.passes(2*time.Minute, time.Minute)
	c.merge()
	git.push("main", "revert", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.advance(time.Minute)
	w.passes(10*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"))
	require.NotContains(t, c.comment(), "Applied")
	require.Contains(t, c.comment(), "A newer commit has taken its place before it was looked at.")
}
