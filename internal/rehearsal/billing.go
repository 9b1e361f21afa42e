package rehearsal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// billing stands in for whoever keeps the bills.
type billing struct {
	w     *World
	lapse string // why no target may be scaled up; empty when it may
	down  bool

	said   string // what the runner was told last: the reason, empty for yes
	yes    bool   // it was told yes, and has not scaled up since
	allows int    // so many replicas
}

// Check answers the engine. What a person's create or start hears is no leave for a
// scale-up that comes later.
func (b *billing) Check(_ context.Context, _ string, _ rollout.Deployment, replicas int) error {
	if b.w.power.dead || b.down {
		return errDown
	}
	if !b.w.byHand {
		b.said, b.yes, b.allows = b.lapse, b.lapse == "", replicas
	}
	if b.lapse != "" {
		return fmt.Errorf("402: %w", &rollout.Lapse{Reason: b.lapse})
	}
	return nil
}

// forget makes a new engine ask for itself.
func (b *billing) forget() { b.yes = false }

// boundsBilled checks that the runner raises a target's floor only with a yes for it that
// came after the last raise.
func (v *watch) boundsBilled(old, b rollout.Bounds) {
	bill := v.w.billing
	if b.Min <= old.Min {
		return
	}
	if !bill.yes || bill.allows < b.Min {
		v.blame(7, "the target is scaled up from %d to %d without leave of the billing", old.Min, b.Min)
	}
	bill.yes = false
}

// parksOnBilling checks that somebody said so.
func (v *watch) parksOnBilling() {
	if v.w.billing.said == "" {
		v.blame(5, "parked on the billing, which allows it")
	}
}

// parseBilling reads what happens to the billing.
func parseBilling(words []string, reason string) (func(*World), error) {
	switch strings.Join(words, " ") {
	case "lapse":
		return func(w *World) { w.billing.lapse = reason; w.watch.faulty() }, nil
	case "mend billing":
		return func(w *World) { w.billing.lapse = ""; w.watch.faulty() }, nil
	case "billing down":
		return func(w *World) { w.billing.down = true; w.watch.faulty() }, nil
	case "billing up":
		return func(w *World) { w.billing.down = false; w.watch.faulty() }, nil
	}
	return nil, nil //nolint:nilnil // another parser knows it
}

// lapses draws what the billing does in a script that ends at an instant. They have a
// stream of their own, so that the other deeds of a seed stay as they are.
func lapses(seed uint64, end time.Duration) []string {
	d := &drawer{rand.New(rand.NewPCG(seed, 0xb111))}
	if !d.oneIn(5) {
		return nil
	}
	begin, mended := `lapse "an invoice is overdue"`, "mend billing"
	if d.oneIn(3) {
		begin, mended = "billing down", "billing up"
	}
	at := time.Duration(d.IntN(int(end/time.Second)+1)) * time.Second
	until := at + time.Duration(d.IntN(int((end-at)/time.Second)+1))*time.Second
	out := []string{offset(at) + " " + begin, offset(until) + " " + mended}
	if d.oneIn(2) {
		out = []string{fmt.Sprintf("in %s of step %d: %s", pick(d, "CHECKING", "SCALING", "SHIFTING", "SOAKING"), 1+d.IntN(3), begin), offset(until) + " " + mended}
	}
	return out
}
