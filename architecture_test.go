package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/sluice-dev/terraform-provider-sluice/"

// rooms says which of our own rooms each room may import, outside its tests. A
// room below another one (fleet/process) belongs to it. A new room is added here
// with a reason, or it does not exist.
var rooms = map[string][]string{
	"":                             {"internal/cli", "internal/render", "provider"},
	"provider":                     {"internal/planning", "internal/engineclient", "internal/rollout", "internal/api", "internal/render", "internal/wire"},
	"reconciler":                   {"internal/declaration", "internal/planning", "internal/policy", "internal/engineclient", "internal/render", "internal/api", "internal/rollout", "internal/wire", "reconciler/gitsource", "reconciler/forge", "reconciler/journal", "reconciler/notify"},
	"reconciler/gitsource":         {}, // adaptors of the reconciler's ports know nothing of it
	"reconciler/gitsource/gittest": {}, // a Git server for the tests of any room: nobody's map has it, so that no product code imports it
	"reconciler/forge":             {},
	"reconciler/forge/forgetest":   {"reconciler/forge"}, // a make-believe forge and the suite of the port, for the tests of any room: nobody's map has it
	"reconciler/journal":           {},
	"reconciler/notify":            {"reconciler/journal"}, // what is to be told is kept beside what happened
	"internal/rollout":             {},
	"internal/declaration":         {"internal/rollout", "internal/api", "internal/wire"}, // a spec goes through the same conversion and checks as the provider's
	"internal/api":                 {},
	"internal/wire":                {"internal/api", "internal/rollout"}, // the two vocabularies side by side, so that neither knows the other
	"internal/planning":            {"internal/rollout", "internal/declaration", "internal/api", "internal/wire"},
	"internal/engineclient":        {"internal/api"},
	"internal/engine":              {"internal/rollout"},
	"internal/store":               {"internal/rollout"},
	"internal/fleet":               {"internal/rollout"},
	"internal/fleet/fleettest":     {"internal/fleet", "internal/rollout", "internal/modelserver"}, // replicas of the drivers' suite
	"internal/store/storetest":     {"internal/rollout"},
	"internal/meter":               {"internal/rollout"}, // the query and the reading are the core's nouns
	"internal/gateway":             {"internal/rollout", "internal/meter"},
	"internal/modelserver":         {},
	"internal/probe":               {},
	"internal/server":              {"internal/engine", "internal/api", "internal/render", "internal/rollout", "internal/wire", "internal/planning"}, // what traffic says of a plan is worked out once, for every door
	"internal/policy":              {},
	"internal/render":              {"internal/rollout", "internal/planning", "internal/declaration", "internal/api", "internal/policy"}, // a verdict is shown at every door
	"internal/serve": {
		"internal/engine", "internal/rollout", "internal/api", "internal/store", "internal/fleet", "internal/meter",
		"internal/gateway", "internal/server", "internal/render", "internal/modelserver",
	},
	"internal/rehearsal": {
		"internal/engine", "internal/rollout", "internal/fleet", "internal/store",
		"internal/declaration", "internal/planning", "internal/api", "internal/wire", "internal/render", // what a user declares, and how it is shown
		"internal/modelserver", // its latency distributions, so that one text says them at both doors
	},
	"internal/cli": {
		"internal/serve", "reconciler", "internal/rehearsal", "internal/engineclient", "internal/declaration", "internal/planning",
		"internal/policy", "internal/render", "internal/api", "internal/modelserver", "internal/probe",
	},
	"testacc": {"provider", "internal/serve", "internal/policy", "internal/api", "internal/engineclient", "internal/rollout", "internal/probe", "internal/modelserver", "internal/gateway", "internal/meter", "reconciler", "reconciler/gitsource", "reconciler/journal", "reconciler/forge"}, // the benchmarks put a reconciler together themselves, so that its calls are counted where it makes them
}

// forbidden are names under which anything could be put.
var forbidden = []string{"util", "utils", "common", "helpers", "types", "misc"}

// roomOf is the room that a folder belongs to.
func roomOf(folder string) string {
	for f := folder; f != "" && f != "."; f = filepath.ToSlash(filepath.Dir(f)) {
		if _, ok := rooms[f]; ok {
			return f
		}
	}
	if folder == "." || folder == "" {
		return ""
	}
	return folder
}

func TestImportsFollowTheRooms(t *testing.T) {
	files := token.NewFileSet()
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path == "internal/tools" || path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			require.NotContains(t, forbidden, d.Name(), "a room named %s says nothing about what lives there", path)
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen++
		room := roomOf(filepath.ToSlash(filepath.Dir(path)))
		allowed, ok := rooms[room]
		require.True(t, ok, "%s is in a room that the map does not have", path)
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if room == "internal/rollout" || room == "internal/api" {
				require.NotContains(t, strings.Split(name, "/")[0], ".", "%s imports %s: this room has the standard library only", path, name)
			}
			if ours, ok := strings.CutPrefix(name, modulePath); ok {
				other := roomOf(ours)
				require.True(t, other == room || slices.Contains(allowed, other), "%s imports %s, which goes against the rooms of design: %s may import %v", path, other, room, allowed)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, seen, 50, "the walk found too few files to mean anything")
}

// TestTheCoreHasNoWorld keeps contexts, clocks, loggers and files out of the core.
func TestTheCoreHasNoWorld(t *testing.T) {
	banned := []string{"context", "log", "log/slog", "os", "net", "net/http", "sync", "io", "io/fs", "math/rand", "math/rand/v2"}
	matches, err := filepath.Glob("internal/rollout/*.go")
	require.NoError(t, err)
	for _, path := range matches {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.NotContains(t, banned, name, "%s imports %s", path, name)
		}
	}
}
