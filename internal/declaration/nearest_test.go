package declaration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two letters that changed places led to another deployment than the one that was meant,
// and a name that was nothing like another one was told all the same.
func TestAHintNamesWhatCanBeMeant(t *testing.T) {
	many := make([]string, 0, 14)
	for _, c := range "abcdefghijklm" {
		many = append(many, "models/"+string([]rune{c, c, c, c, c}))
	}
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"qwen53", []string{"qwen25", "qwen35"}, `did you mean "qwen35"?`},
		{"qwen45", []string{"qwen25", "qwen35", "llama"}, `did you mean "qwen25" or "qwen35"?`},
		{"models/zzz", []string{"models/prod", "models/dev2"}, "there are: models/prod, models/dev2"},
		{"models/zzz", many, ""},
		{"aa", []string{"a", "old"}, `did you mean "a"?`},
		{"x", []string{"y", "z"}, "there are: y, z"},
		{"statsu", []string{"status", "suspend"}, `did you mean "status"?`},
		{"ab", []string{"ba"}, `did you mean "ba"?`},
	} {
		require.Equal(t, c.want, nearest(c.name, c.known), c.name)
	}
}
