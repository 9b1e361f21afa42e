package reconciler

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

func isKind(kind string) bool {
	return slices.ContainsFunc(EventKinds, func(k EventKind) bool { return k.Kind == kind })
}

// onlyKnownKinds fails a world that has told a kind which the list has not.
func (w *stage) onlyKnownKinds() {
	for e, err := range w.journal.History(w.t.Context(), journal.Query{Most: 100_000}) {
		require.NoError(w.t, err)
		require.True(w.t, isKind(e.Kind) || e.Kind == kindRecovered, "%s is told, and EventKinds has it not: %s", e.Kind, e.Text)
	}
}

// families are the kinds that the code makes of a prefix and a word of an enumeration.
func families() map[string][]string {
	out := map[string][]string{
		"apply.":   {string(planning.Create), string(planning.Start), string(planning.Steer), string(planning.Update), string(planning.Replace), string(planning.Delete)},
		"source.":  {string(gitsource.FirstSeen), string(gitsource.Unchanged), string(gitsource.Advanced), string(gitsource.Rewritten), string(gitsource.TagMoved), string(gitsource.Deleted), string(gitsource.Restored)},
		"run.":     {string(Finished), string(Superseded)},
		"asked.":   askable(),
		"rollout.": {},
		"stack.":   {},
	}
	for _, s := range []string{
		engineclient.StatePending, engineclient.StateRunning, engineclient.StateStabilizing, engineclient.StatePausing,
		engineclient.StateCancelling, engineclient.StateCanceled, engineclient.StateCompleted,
	} { // those of a park are told as one
		out["rollout."] = append(out["rollout."], engineclient.Short(s))
	}
	for _, p := range phases() {
		out["stack."] = append(out["stack."], string(p))
	}
	return out
}

// The list of kinds is that of the sources: each literal kind that is told is in it, each
// that is made of a prefix is of an enumeration, and it has no other.
func TestTheListOfKindsIsWhatTheCodeTells(t *testing.T) {
	var made []string
	for prefix, words := range families() {
		for _, word := range words {
			made = append(made, prefix+strings.ToLower(strings.ReplaceAll(word, " ", "_")))
		}
	}
	literals, prefixes := kindsOfSources(t)
	for _, p := range prefixes {
		require.Contains(t, families(), p, "a family of kinds that this test does not know")
	}
	require.Len(t, prefixes, len(families()))
	var listed []string
	for _, k := range EventKinds {
		require.NotEmpty(t, k.Doc)
		listed = append(listed, k.Kind)
	}
	want := slices.Concat(made, literals)
	slices.Sort(want)
	require.ElementsMatch(t, slices.Compact(want), listed)
}

// kindsOfSources are the texts in the sources that look like a kind, or the beginning of
// one, where a kind is set.
func kindsOfSources(t *testing.T) (literals, prefixes []string) {
	t.Helper()
	kind := regexp.MustCompile(`^(rollout|stack|run|apply|asked|drift|source|prune)\.[a-z_]*$`)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "kinds.go" {
			continue
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != gotoken.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			switch {
			case !kind.MatchString(text) || engineEvents[text]:
			case strings.HasSuffix(text, "."):
				prefixes = append(prefixes, text)
			default:
				literals = append(literals, text)
			}
			return true
		})
	}
	slices.Sort(literals)
	slices.Sort(prefixes)
	require.Greater(t, len(literals), 5)
	return slices.Compact(literals), slices.Compact(prefixes)
}

// engineEvents are types of an engine's feed that look like kinds of ours.
var engineEvents = map[string]bool{"rollout.paused": true, "rollout.resumed": true, "rollout.promoted": true}

// kindTable is the table of the page, by families.
func kindTable() string {
	out := "| kind | when |\n|---|---|\n"
	for _, k := range EventKinds {
		out += fmt.Sprintf("| `%s` | %s |\n", k.Kind, k.Doc)
	}
	return out
}

func TestThePageTellsEveryKindOfEvent(t *testing.T) {
	page := thePage(t)
	before, rest, ok := strings.Cut(page, "| kind | when |\n")
	require.True(t, ok)
	rows := regexp.MustCompile(`^(?:\|.*\n)+`).FindString(rest)
	if *update {
		require.NoError(t, os.WriteFile(pageName, []byte(before+kindTable()+strings.TrimPrefix(rest, rows)), 0o600))
		return
	}
	require.Equal(t, kindTable(), "| kind | when |\n"+rows)
}

func TestAKindOfEventsThatThereIsNotIsRefused(t *testing.T) {
	for _, good := range []string{"rollout.parked", "rollout.*", "source.renamed", "drift.*", "*"} {
		require.True(t, toldAs(good), good)
	}
	for bad, hint := range map[string]string{
		"rollouts.*": `"rollout.*"`, "rollout.prked": `"rollout.parked"`, "stack.paused": `"stack.parked"`,
		"run.nonsense": "run.began, run.finished, run.superseded", "parked": "rollout.*, stack.*", "": "rollout.*",
	} {
		require.False(t, toldAs(bad), bad)
		require.Contains(t, kindHint(bad), hint, bad)
	}
}
