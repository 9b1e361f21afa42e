package rehearsal

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

var (
	runs   = flag.Int("rehearsal.runs", 0, "how many random rollouts to play; 0 for as many as a test run has time for")
	from   = flag.Uint64("rehearsal.seed", 1, "the first seed")
	atMost = flag.Duration("rehearsal.for", 0, "play random rollouts for this long instead of a number of them")
)

// worldsOf is how many random rollouts a run of the tests plays.
const worldsOf = 20_000

// tally sums up what the worlds had.
type tally struct {
	rollouts, refused, completed, canceled, parks, crashes, calls, steps atomic.Int64
}

func (c *tally) add(r Result) {
	c.rollouts.Add(1)
	c.parks.Add(int64(r.Stats.Parks))
	c.crashes.Add(int64(r.Stats.Crashes))
	c.calls.Add(int64(r.Stats.Calls))
	c.steps.Add(int64(r.Stats.Steps))
	switch {
	case r.Refused:
		c.refused.Add(1)
	case r.Record.State == rollout.Completed:
		c.completed.Add(1)
	case r.Record.State == rollout.Canceled:
		c.canceled.Add(1)
	}
}

// readsOf has every tenth world decode each row anew.
func readsOf(seed uint64) Reads {
	if seed%10 == 0 {
		return Decoded
	}
	return Remembered
}

// asMany is how many worlds to play, and until when.
func asMany(t *testing.T) (n int, until time.Time) {
	t.Helper()
	n = worldsOf
	if testing.Short() {
		n = 500
	}
	if slowBuild {
		n = 50
	}
	if text := os.Getenv("SLUICE_REHEARSAL_RUNS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	if *runs > 0 {
		n = *runs
	}
	if *atMost > 0 {
		return 1 << 40, time.Now().Add(*atMost)
	}
	return n, time.Time{}
}

// Whatever happens to a rollout, what must never be is never seen; and once the faults
// are lifted, with a patient operator, it ends.
func TestRandomRollouts(t *testing.T) {
	n, until := asMany(t)
	var count tally
	var next atomic.Int64
	var failed atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		d := disk(t)
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(n) || !until.IsZero() && time.Now().After(until) || failed.Load() > 3 {
					return
				}
				seed := *from + uint64(i)
				r, err := Play(context.Background(), Draw(seed), Setup{Disk: d, Reads: readsOf(seed)})
				count.add(r)
				if err != nil || len(r.Violations) > 0 {
					failed.Add(1)
					report(t, d, seed, r, err)
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	all := count.rollouts.Load()
	t.Logf("measured: %d random rollouts in %v on %d cores, %.0f a second: %d completed, %d canceled, %d refused by what stood; %d parks, %d crashes, %d outward calls, %d steps",
		all, took.Round(time.Millisecond), runtime.GOMAXPROCS(0), float64(all)/took.Seconds(), count.completed.Load(), count.canceled.Load(), count.refused.Load(),
		count.parks.Load(), count.crashes.Load(), count.calls.Load(), count.steps.Load())
}

// report shrinks a script that fails and tells how to play it again.
func report(t *testing.T, d *store.SQLite, seed uint64, r Result, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("seed %d: %v\n%s", seed, err, Draw(seed))
		return
	}
	first := r.Violations[0]
	small := Shrink(Draw(seed), func(s Script) bool {
		r, err := Play(context.Background(), s, Setup{Disk: d, Reads: readsOf(seed)})
		return err == nil && len(r.Violations) > 0 && sameFault(r.Violations[0], first)
	})
	again, _ := Play(context.Background(), small, Setup{Disk: d, Reads: readsOf(seed)})
	lines := again.Lines
	if len(lines) > 80 {
		lines = lines[len(lines)-80:]
	}
	t.Errorf("seed %d: %s\nthe shortest script that shows it (-rehearsal.seed=%d -rehearsal.runs=1 plays the whole one):\n%s\n%s\nthen\n  %s", seed, first, seed, small, fmt.Sprint(again.Violations), strings.Join(lines, "\n  "))
}

// sameFault compares two violations but for their numbers.
func sameFault(a, b Violation) bool {
	words := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, text)
	}
	return a.Guarantee == b.Guarantee && words(a.Text) == words(b.Text)
}
