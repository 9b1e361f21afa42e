package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// Outlook is what many plays of one plan came to.
type Outlook struct {
	Runs      int          `json:"runs"`
	Completed int          `json:"completed"`
	Took      *Spread      `json:"took,omitempty"`        // of the runs that completed
	ParkedAt  *Spread      `json:"parkedAfter,omitempty"` // of the others
	Parks     []ParkChance `json:"parks"`                 // the most frequent first
}

// Spread is a distribution of times.
type Spread struct {
	Min api.Duration `json:"min"`
	P50 api.Duration `json:"p50"`
	P95 api.Duration `json:"p95"`
	Max api.Duration `json:"max"`
}

// ParkChance is how often runs parked of one category at one step.
type ParkChance struct {
	Category string  `json:"category"`
	Step     int     `json:"step"` // 1-based
	Runs     int     `json:"runs"`
	Share    float64 `json:"share"` // of all runs
	Seed     uint64  `json:"seed"`  // of the first such run, to look at it
}

// MaxRuns bounds what one outlook plays.
const MaxRuns = 10_000

// NewOutlook plays a plan many times, with the seeds from the given one on. It ends early
// with the context's error.
func NewOutlook(ctx context.Context, p Plan, seed uint64, runs int, disk *store.SQLite) (Outlook, error) {
	if runs < 1 || runs > MaxRuns {
		return Outlook{}, fmt.Errorf("%d runs: want 1 to %d", runs, MaxRuns)
	}
	type place struct {
		category string
		step     int
	}
	out := Outlook{Runs: runs, Parks: []ParkChance{}}
	at := map[place]int{}
	var took, parked []api.Duration
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return Outlook{}, err
		}
		f, err := NewForecast(ctx, p, seed+uint64(i), disk) //nolint:gosec // i is not negative
		if err != nil {
			return Outlook{}, fmt.Errorf("seed %d: %w", seed+uint64(i), err) //nolint:gosec // as above
		}
		if f.Parked == nil {
			took = append(took, f.Took)
			if f.State == string(rollout.Completed) {
				out.Completed++
			}
			continue
		}
		parked = append(parked, f.Took)
		where := place{f.Parked.Category, f.Parked.Step}
		n, known := at[where]
		if !known {
			n = len(out.Parks)
			at[where], out.Parks = n, append(out.Parks, ParkChance{Category: where.category, Step: where.step, Seed: f.Seed})
		}
		out.Parks[n].Runs++
	}
	for i := range out.Parks {
		out.Parks[i].Share = float64(out.Parks[i].Runs) / float64(runs)
	}
	slices.SortStableFunc(out.Parks, func(a, b ParkChance) int { return cmp.Compare(b.Runs, a.Runs) })
	out.Took, out.ParkedAt = spread(took), spread(parked)
	return out, nil
}

// spread sums times up; nil for none.
func spread(times []api.Duration) *Spread {
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	rank := func(p float64) api.Duration { return times[max(1, int(math.Ceil(p*float64(len(times)))))-1] }
	return &Spread{Min: times[0], P50: rank(0.5), P95: rank(0.95), Max: times[len(times)-1]}
}
