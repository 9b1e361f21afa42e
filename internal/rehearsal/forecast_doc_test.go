package rehearsal

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// The manual names every fault, every word of a facts file and every field of the JSON.
func TestTheManualIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/rehearse.md")
	require.NoError(t, err)
	manual := string(text)
	for _, k := range FaultKinds() {
		assert.Contains(t, manual, "| `"+strings.ReplaceAll(k.Form, "|", `\|`)+"` | "+k.Does+" |")
	}
	for _, v := range []any{Facts{}, DeploymentFacts{}, PoolFacts{}, TimingFacts{}} {
		for f := range reflect.TypeOf(v).Fields() {
			if key := f.Tag.Get("yaml"); key != "-" {
				assert.Contains(t, manual, key+":")
			}
		}
	}
	for _, v := range []any{Report{}, Forecast{}, Parked{}, Tally{}, StepTimes{}, PartTimes{}, planning.GateNeed{}, Outlook{}, Spread{}, ParkChance{}, Played{}} {
		for f := range reflect.TypeOf(v).Fields() {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
				assert.Contains(t, manual, key)
			}
		}
	}
}

// The example of a facts file in the manual is one, and says what is the default.
func TestTheManualsFactsAreFacts(t *testing.T) {
	text, err := os.ReadFile("../../docs/rehearse.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	f, err := ParseFacts([]byte(example))
	require.NoError(t, err)
	assert.Equal(t, Facts{}.InEffect(), f.InEffect())
}

// What the README shows of the example is what it prints.
func TestTheReadmeShowsWhatIsPrinted(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "$ sluice rehearse examples/rehearse --facts examples/rehearse/facts.yaml\n")
	require.True(t, ok)
	shown, _, _ := strings.Cut(rest, "```")
	p, f, a := demonstrated(t, demoFolder)
	f.From = "examples/rehearse/facts.yaml"
	out := printed(t, p, f, a, 1)
	for block := range strings.SplitSeq(shown, "…\n") {
		assert.Contains(t, out, block)
	}
	_, rest, ok = strings.Cut(rest, "--fault slow-target=-50% --runs 100\n…\n")
	require.True(t, ok)
	shown, _, _ = strings.Cut(rest, "```")
	r, err := Rehearse(t.Context(), faulted(t, p, "slow-target=-50%"), 1, 100)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, render.Options{}))
	assert.True(t, strings.HasSuffix(b.String(), shown), b.String())
}
