package forge_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// K5: names of 300 characters and of any script have a short form that stays the same
// and is nobody else's.
func TestContextsOfStatusesFitAndNeverCollide(t *testing.T) {
	seen := map[string]string{} // name of a context: its parts
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.StringMatching(`[a-c/~]{0,4}`), rapid.StringN(0, 300, -1), rapid.StringMatching(`[a-z]{250,300}[ab]`))
		parts := rapid.SliceOfN(part, 1, 4).Draw(t, "parts")
		limit := rapid.IntRange(40, 255).Draw(t, "limit")
		name := forge.Context(limit, parts...)
		if n := utf8.RuneCountInString(name); n > limit || n == 0 {
			t.Fatalf("%q has %d characters, of %d", name, n, limit)
		}
		if name != forge.Context(limit, parts...) {
			t.Fatalf("another name at the second time")
		}
		for _, r := range name {
			if r < ' ' || r > 0xffff {
				t.Fatalf("%q has the character %U, which not every forge takes", name, r)
			}
		}
		key := strings.Join(parts, "\x00|")
		if other, ok := seen[name]; ok && other != key {
			t.Fatalf("%q is the name of both %q and %q", name, other, key)
		}
		seen[name] = key
	})
}

func TestAPlainContextReadsAsItIs(t *testing.T) {
	assert.Equal(t, "sluice/prod/chat", forge.Context(255, "sluice", "prod", "chat"))
	long := forge.Context(255, "sluice", strings.Repeat("x", 300))
	assert.Equal(t, 255, utf8.RuneCountInString(long))
	assert.True(t, strings.HasPrefix(long, "sluice/xxx"))
	assert.NotEqual(t, forge.Context(255, "a/b", "c"), forge.Context(255, "a", "b/c"))
	assert.NotEqual(t, forge.Context(255, "a", "b "), forge.Context(255, "a", "b"), "a forge may trim")
	assert.Len(t, forge.Context(10, "sluice", "chat and more"), 10)
}
