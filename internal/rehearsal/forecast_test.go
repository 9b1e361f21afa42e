package rehearsal

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// demonstrated is the plan of an example folder.
func demonstrated(t *testing.T, folder string) (Plan, Facts, []string) {
	t.Helper()
	set, found := declaration.Load(folder, declaration.Options{})
	require.NoError(t, found.Err())
	text, err := os.ReadFile(folder + "/facts.yaml")
	require.NoError(t, err)
	f, err := ParseFacts(text)
	require.NoError(t, err)
	f.From = "facts.yaml"
	require.Len(t, set.Rollouts, 1)
	p, assumed, err := PlanOf(set, set.Rollouts[0], f)
	require.NoError(t, err)
	return p, f, assumed
}

const demoFolder = "../../examples/rehearse"

func faulted(t *testing.T, p Plan, faults ...string) Plan {
	t.Helper()
	for _, text := range faults {
		f, err := ParseFault(text)
		require.NoError(t, err)
		p.Faults = append(p.Faults, f)
	}
	return p
}

func foretold(t *testing.T, p Plan, seed uint64) Forecast {
	t.Helper()
	f, err := NewForecast(t.Context(), p, seed, disk(t))
	require.NoError(t, err)
	return f
}

// part finds the first part of a name in a step.
func (f Forecast) part(t *testing.T, step int, name string) PartTimes {
	t.Helper()
	for _, st := range f.Steps {
		for _, p := range st.Parts {
			if st.Step == step && p.Part == name {
				return p
			}
		}
	}
	require.FailNow(t, "no such part", "%s of step %d", name, step)
	return PartTimes{}
}

// The published run: 10 % at +3:57, parked at +11:00 on a p95 of 1740 against 734 ms,
// and back in under six minutes.
func TestTheDemoOfTheSeedKeepsItsPublishedClock(t *testing.T) {
	p, _, assumed := demonstrated(t, demoFolder)
	require.Empty(t, assumed)
	f := foretold(t, p, 1)
	within := func(want, got time.Duration) { t.Helper(); assert.LessOrEqual(t, (want - got).Abs(), time.Second, got) }
	within(3*time.Minute+57*time.Second, time.Duration(f.part(t, 1, "shift").From))
	within(11*time.Minute, time.Duration(f.Took))
	require.NotNil(t, f.Parked)
	assert.Equal(t, "METRIC_REGRESSION", f.Parked.Category)
	assert.Equal(t, 1, f.Parked.Step)
	assert.Zero(t, f.Traffic.Lost)
	assert.Equal(t, 2, f.PeakGPUs)

	back, _, assumed := demonstrated(t, demoFolder+"/reverse")
	require.Empty(t, assumed)
	r := foretold(t, back, 1)
	assert.Equal(t, "COMPLETED", r.State)
	assert.Less(t, time.Duration(r.Took), 6*time.Minute)
	assert.Zero(t, r.Traffic.Lost)
}

func printed(t *testing.T, p Plan, facts Facts, assumed []string, seed uint64, faults ...string) string {
	t.Helper()
	p = faulted(t, p, faults...)
	var b bytes.Buffer
	require.NoError(t, NewReport(p, facts, assumed, faults, foretold(t, p, seed), nil).Write(&b, render.Options{}))
	return b.String()
}

func TestX(t *testing.T) {
	p, f, a := demonstrated(t, demoFolder)
	t.Log("\n" + printed(t, p, f, a, 1))
	p, f, a = demonstrated(t, demoFolder+"/reverse")
	t.Log("\n" + printed(t, p, f, a, 1))
}
