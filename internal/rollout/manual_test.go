package rollout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// constants are the values of a named string type, as this room's source declares them.
func constants(t *testing.T, typeName string) []string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var out []string
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if named, ok := spec.Type.(*ast.Ident); !ok || named.Name != typeName {
				return true
			}
			for _, v := range spec.Values {
				if literal, ok := v.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					out = append(out, text)
				}
			}
			return true
		})
	}
	return out
}

// The engine's page has a row for each category, which says whether it is retried, and
// one for each event.
func TestTheEnginesPageNamesEveryCategoryAndEvent(t *testing.T) {
	text, err := os.ReadFile("../../docs/engine.md")
	require.NoError(t, err)
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for _, name := range strings.Split(cells[0], ",") {
			if name = strings.TrimSpace(name); strings.HasPrefix(name, "`") {
				rows[strings.Trim(name, "`")] = cells
			}
		}
	}
	categories := constants(t, "Category")
	require.Len(t, categories, 13)
	for _, c := range categories {
		cells := rows[c]
		if !assert.Len(t, cells, 5, "the row of %s", c) {
			continue
		}
		retried := map[string]bool{"yes": true, "no": false}[strings.TrimSpace(cells[4])]
		assert.Equal(t, Category(c).Recoverable(), retried, "%s is retried by itself", c)
	}
	events := constants(t, "EventType")
	require.Greater(t, len(events), 20)
	for _, e := range events {
		assert.NotEmpty(t, rows[e], "the row of the event %s", e)
	}
	assert.Contains(t, string(text), Limited)
}
