package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// Played is what came of one scenario file.
type Played struct {
	Holds      bool     `json:"holds"`
	Transcript []string `json:"transcript"`
	Diff       []string `json:"diff"`       // lines with - for expected and + for played; empty when they agree
	Violations []string `json:"violations"` // guarantees that were seen broken
}

// PlayScenario plays one scenario. One without a transcript holds unless a guarantee is
// broken.
func PlayScenario(ctx context.Context, text string) (out Played, err error) {
	s, err := ParseScript(text)
	if err != nil {
		return Played{}, err
	}
	disk, err := store.OpenMemory(ctx)
	if err != nil {
		return Played{}, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	got, err := Play(ctx, s, Setup{Disk: disk, Reads: Remembered})
	if err != nil {
		return Played{}, placed(text, err)
	}
	out = Played{Transcript: got.Lines, Diff: []string{}, Violations: []string{}}
	if len(s.Expect) > 0 {
		out.Diff = difference(s.Expect, got.Lines)
	}
	for _, v := range got.Violations {
		out.Violations = append(out.Violations, v.String())
	}
	out.Holds = len(out.Diff)+len(out.Violations) == 0
	return out, nil
}

// Write prints the transcript of a scenario that holds, else the difference.
func (p Played) Write(w io.Writer) error {
	lines := p.Transcript
	if !p.Holds {
		lines = p.Diff
		for _, v := range p.Violations {
			lines = append(lines, "! "+v)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// maxDiffed bounds the lines that a difference compares one by one; what is longer is
// told as a whole.
const maxDiffed = 2000

// difference is the shortest list of lines to take away and to add, with what agrees
// between them; empty when all agrees.
func difference(want, got []string) []string {
	if strings.Join(want, "\n") == strings.Join(got, "\n") {
		return []string{}
	}
	want, got = want[:min(len(want), maxDiffed)], got[:min(len(got), maxDiffed)]
	common := make([][]int, len(want)+1) // lines in common from i and k on
	for i := range common {
		common[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for k := len(got) - 1; k >= 0; k-- {
			if common[i][k] = max(common[i+1][k], common[i][k+1]); want[i] == got[k] {
				common[i][k] = common[i+1][k+1] + 1
			}
		}
	}
	var out []string
	i, k := 0, 0
	for i < len(want) || k < len(got) {
		switch {
		case i < len(want) && k < len(got) && want[i] == got[k]:
			out = append(out, "  "+want[i])
			i, k = i+1, k+1
		case k == len(got) || i < len(want) && common[i+1][k] >= common[i][k+1]:
			out = append(out, "- "+want[i])
			i++
		default:
			out = append(out, "+ "+got[k])
			k++
		}
	}
	return out
}
