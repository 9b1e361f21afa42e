package reconciler

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Two policies have a rule of the same name: a word for it lifts both denials, so it takes
// somebody who may lift both, each by its own policy's overriders.
func TestAnOverrideTakesSomebodyForEveryDenialThatItLifts(t *testing.T) {
	w := newStage(t)
	rules := func(name string) string {
		dir := t.TempDir()
		text := fmt.Sprintf("package %[1]s\n\ndeny contains {\"msg\": \"%[1]s says no\", \"rule\": \"size\", \"override\": [\"owners\"]} if {\n  some c in input.resource_changes\n  c.type == \"sluice_rollout\"\n  \"create\" in c.change.actions\n}\n", name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.rego"), []byte(text), 0o600))
		return dir
	}
	git := w.follow("models", map[string]string{"prod/main.tf": canaryHouse("chat")})
	c := w.repository("models")
	c.Policies = []PolicyConfig{
		{Path: rules("team"), Overriders: map[string][]Grant{"owners": {{Role: forge.Write}}}},
		{Path: rules("security"), Overriders: map[string][]Grant{"owners": {{User: "olga"}}}},
	}
	f := w.forgeOf("models")
	w.repository("models").Forge.Permissions = Permissions{Override: {{Role: forge.Write}}}
	w.begin()
	w.until("serves", 20*time.Minute, func() bool {
		return w.stack("models", "prod").Phase == InStep && w.serves("chat", "stable", 2)
	})
	pull := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
	require.NoError(t, w.pass())
	require.Contains(t, pull.comment(), "security says no")
	f.Say(pull.number, "ben", "/sluice override size because I am of the team")
	w.advance(time.Minute)
	require.NoError(t, w.pass())
	var said []string
	for _, comment := range f.Comments(pull.number) {
		said = append(said, comment.Body)
	}
	require.Contains(t, strings.Join(said, "\n"), "ben may not lift rule size")
	pull.merge()
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Empty(t, w.all("chat"))
	f.Say(pull.number, "olga", "/sluice override size because it was rehearsed")
	w.advance(time.Minute)
	w.passes(5*time.Minute, time.Minute)
	require.Len(t, w.all("chat"), 1, "olga may write too, so she may lift both")
}
