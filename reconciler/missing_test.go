package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// once is what a single pass tells a pipeline: its exit code and the status.
func (w *stage) once() (int, string) {
	w.t.Helper()
	require.NoError(w.t, w.pass())
	s, err := w.r.Status(w.t.Context())
	require.NoError(w.t, err)
	var out strings.Builder
	require.NoError(w.t, s.Render(&out, render.Options{}))
	return s.ExitCode(), out.String()
}

// A pipeline whose branch is not there follows nothing. It was green after the branch was
// deleted, and amber for ever when its name was a typing error.
func TestAPipelineIsToldThatItsRefIsNotThere(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	git.heads["refs/heads/staging"] = git.heads["refs/heads/main"]
	w.begin()
	w.until("serves", 20*time.Minute, w.phase(InStep))
	code, _ := w.once()
	require.Zero(t, code)
	n, main := len(w.calls), git.heads["refs/heads/main"]

	delete(git.heads, "refs/heads/main")
	for range 2 { // it stays so
		code, text := w.once()
		require.Equal(t, 1, code)
		require.Contains(t, text, `✗ the ref is missing: there is no branch "main"; nothing is changed at the engine until it is there`)
		require.Equal(t, InStep, w.stack("models", "prod").Phase)
	}
	delete(git.heads, "refs/heads/staging")
	for range 2 {
		code, text := w.once()
		require.Equal(t, 1, code)
		require.Contains(t, text, "the repository has no branch and no tag any more; gone is main, which was at "+short(main))
		require.NotContains(t, text, "yet")
		w.advance(time.Minute)
	}
	require.Equal(t, 1, w.told("source.deleted"))
	require.Empty(t, w.writes(n))
	git.heads["refs/heads/main"] = main
	code, text := w.once()
	require.Zero(t, code, text)
	require.Equal(t, 1, w.told("source.restored"))

	for _, wrong := range []struct {
		wanted gitsource.Wanted
		says   string
	}{
		{gitsource.Wanted{Branch: "mian"}, `there is no branch "mian"; did you mean "main"?`},
		{gitsource.Wanted{Tag: "v1"}, `there is no tag "v1"`},
		{gitsource.Wanted{Semver: ">=1.0.0"}, "no tag is in the range"},
	} {
		w.repository("models").Wanted = wrong.wanted
		w.begin()
		code, text := w.once()
		require.Equal(t, 1, code, text)
		require.Contains(t, text, wrong.says)
	}
	require.Empty(t, w.writes(n))
}

// The last branch of a repository was deleted: that is not a repository which waits for
// its first commit, also when nothing else is left at the first look after it.
func TestARepositoryThatHasLostItsLastBranchHadCommits(t *testing.T) {
	w := newStage(t)
	git := w.follow("models", nil)
	w.begin()
	code, text := w.once()
	require.Equal(t, ExitPending, code, "the first push is waited for")
	require.Contains(t, text, "the ref is empty: the repository has no commit yet")
	git.push("main", "first", map[string]string{"prod/main.tf": canaryHouse("chat")})
	w.until("serves", 20*time.Minute, w.phase(InStep))
	delete(git.heads, "refs/heads/main")
	code, text = w.once()
	require.Equal(t, 1, code)
	require.Contains(t, text, "the ref is missing: the repository has no branch and no tag any more")
	require.Equal(t, 1, w.told("source.deleted"))
}
