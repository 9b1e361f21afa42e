package reconciler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// What people say is done in the order in which they say it: the lines of one comment, and
// comments of one second.
func TestWordsAreDoneInTheirOrder(t *testing.T) {
	for name, say := range map[string]func(f *forgetest.World, number int){
		"one comment": func(f *forgetest.World, number int) {
			f.Say(number, "ann", "Hello\n\n/sluice suspend prod because of the audit\n\nand\n\nafter\n\nit\n\n/sluice continue prod\n")
		},
		"comments of one second": func(f *forgetest.World, number int) {
			id := int64(0)
			for id != 8 && id != 98 { // the next two are 9 and 10, or 99 and 100
				id = f.Say(number, "ben", "talk")
			}
			f.Say(number, "ann", "/sluice suspend prod because of the audit")
			f.Say(number, "ann", "/sluice continue prod")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, git, f := reviewed(t)
			c := w.propose(git, f, "canary", map[string]string{"prod/main.tf": canaryHouse("chat", 10, 100)})
			require.NoError(t, w.pass())
			f.SetRole("ann", forge.Maintain)
			say(f, c.number)
			w.advance(time.Minute)
			w.passes(3*time.Minute, time.Minute)
			require.Equal(t, 1, w.told("asked.suspend"))
			require.Equal(t, 1, w.told("asked.continue"))
			require.Empty(t, w.stack("models", "prod").Suspended, w.show())
		})
	}
}
