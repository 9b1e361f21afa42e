package rehearsal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// One seed decides everything: the script, and every line that comes of it, whether rows
// are remembered or decoded anew.
func TestTheSameSeedPlaysTheSameTranscript(t *testing.T) {
	d, other := disk(t), disk(t)
	seeds := uint64(60)
	if slowBuild {
		seeds = 5
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		require.Equal(t, Draw(seed), Draw(seed))
		first, err := Play(t.Context(), Draw(seed), Setup{Disk: d})
		require.NoError(t, err)
		for _, setup := range []Setup{{Disk: d}, {Disk: other, Reads: Decoded}} {
			again, err := Play(t.Context(), Draw(seed), setup)
			require.NoError(t, err)
			require.Equal(t, first.Lines, again.Lines, "seed %d", seed)
			require.Equal(t, first.Stats, again.Stats, "seed %d", seed)
		}
	}
}

// A script is text: read again, it plays the same.
func TestAScriptReadAgainPlaysTheSame(t *testing.T) {
	d := disk(t)
	for seed := uint64(100); seed < 120; seed++ {
		drawn := Draw(seed)
		read, err := ParseScript(drawn.String())
		require.NoError(t, err)
		require.Equal(t, drawn.String(), read.String())
		first, err := Play(t.Context(), drawn, Setup{Disk: d})
		require.NoError(t, err)
		again, err := Play(t.Context(), read, Setup{Disk: d})
		require.NoError(t, err)
		require.Equal(t, first.Lines, again.Lines)
	}
}

// A long script that shows a fault is shrunk to what the fault needs, and still shows it.
func TestAFaultIsShrunkToWhatItNeeds(t *testing.T) {
	d := disk(t)
	wrong := func(c *engine.Config) { // a cancel that goes all the way
		c.Router = bentRouter{c.Router, func(r *rollout.Route) bool { return true }}
		c.Decide = nil
		concludesAll(c)
	}
	setup := Setup{Disk: d, Wrong: wrong}
	var long Script
	var found Violation
	for seed := uint64(1); found.Text == "" && seed < 500; seed++ {
		long = Draw(seed)
		r, err := Play(t.Context(), long, setup)
		require.NoError(t, err)
		if len(r.Violations) > 0 && len(long.When) > 8 {
			found = r.Violations[0]
		}
	}
	require.NotEmpty(t, found.Text)
	fails := func(s Script) bool {
		r, err := Play(t.Context(), s, setup)
		return err == nil && len(r.Violations) > 0 && r.Violations[0].Guarantee == found.Guarantee
	}
	small := Shrink(long, fails)
	require.True(t, fails(small))
	require.Less(t, len(small.When), len(long.When)/2)
	require.Contains(t, strings.Join(small.When, "\n"), "cancel")
	for i := range small.When {
		shorter, _ := withoutWhen(small, i)
		require.False(t, fails(shorter), "%q is not needed", small.When[i])
	}
}

// concludesAll makes every cancel end at the step's percent, served or not.
func concludesAll(c *engine.Config) {
	for _, m := range controlMutants() {
		if m.name == "a cancel goes back to the source" {
			m.wrong(c)
		}
	}
}
