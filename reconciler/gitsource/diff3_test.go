package gitsource

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// text draws a text of few different lines, so that they repeat.
func text() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		all := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "}\n", "\n"}), 0, 12).Draw(t, "lines")
		if rapid.Bool().Draw(t, "cut") && len(all) > 0 {
			all[len(all)-1] = strings.TrimSuffix(all[len(all)-1], "\n")
		}
		return []byte(strings.Join(all, ""))
	})
}

func TestRandomMergeWithOneSideUnchangedIsTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, x := text().Draw(t, "base"), text().Draw(t, "x")
		for _, pair := range [][2][]byte{{base, x}, {x, base}, {x, x}} {
			got, ok := merge3(base, pair[0], pair[1])
			require.True(t, ok)
			require.Equal(t, string(x), string(got))
		}
	})
}

func TestRandomMergeIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, a, b := text().Draw(t, "base"), text().Draw(t, "a"), text().Draw(t, "b")
		left, okLeft := merge3(base, a, b)
		right, okRight := merge3(base, b, a)
		require.Equal(t, okLeft, okRight)
		require.Equal(t, string(left), string(right))
	})
}

// Two edits of lines that are all different merge when a line lies between them, and
// conflict when none does.
func TestRandomEditsConflictWhenTheyTouch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "lines")
		var base []string
		for i := range n {
			base = append(base, string(rune('a'+i))+"\n")
		}
		edit := func(name string) (from, to int, out []string, added []string) {
			from = rapid.IntRange(0, n).Draw(t, name+" from")
			to = rapid.IntRange(from, n).Draw(t, name+" to")
			for i := range rapid.IntRange(0, 2).Draw(t, name+" added") {
				added = append(added, name+string(rune('0'+i))+"\n")
			}
			if from == to && len(added) == 0 {
				added = []string{name + "\n"}
			}
			out = append(append(append(out, base[:from]...), added...), base[to:]...)
			return from, to, out, added
		}
		from1, to1, one, added1 := edit("X")
		from2, to2, two, added2 := edit("Y")
		got, ok := merge3([]byte(strings.Join(base, "")), []byte(strings.Join(one, "")), []byte(strings.Join(two, "")))
		same := strings.Join(one, "") == strings.Join(two, "")
		apart := to1 < from2 || to2 < from1
		require.Equal(t, apart || same, ok, "[%d,%d) and [%d,%d)", from1, to1, from2, to2)
		if !ok || same {
			return
		}
		if from2 < from1 {
			from1, to1, added1, from2, to2, added2 = from2, to2, added2, from1, to1, added1
		}
		var want []string
		want = append(append(append(append(append(want, base[:from1]...), added1...), base[to1:from2]...), added2...), base[to2:]...)
		require.Equal(t, strings.Join(want, ""), string(got))
	})
}

func TestRandomDiffLeadsFromOneToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := lines(text().Draw(t, "a")), lines(text().Draw(t, "b"))
		hunks, ok := diff(a, b)
		require.True(t, ok)
		require.Equal(t, strings.Join(b, ""), strings.Join(applied(a, hunks, 0, len(a)), ""))
		for i := 1; i < len(hunks); i++ {
			require.Less(t, hunks[i-1].to, hunks[i].from, "hunks are in order and do not touch")
		}
	})
}

func TestTextsThatDifferTooMuchAreForAPerson(t *testing.T) {
	var a, b, c strings.Builder
	for i := range 3000 {
		a.WriteString(strings.Repeat("a", i%50) + "\n")
		b.WriteString("b" + strings.Repeat("b", i%50) + "\n")
		c.WriteString("c" + strings.Repeat("c", i%50) + "\n")
	}
	_, ok := merge3([]byte(a.String()), []byte(b.String()), []byte(c.String()))
	require.False(t, ok)
}
