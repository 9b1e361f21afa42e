package rehearsal

import (
	"context"
	"errors"

	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
)

// Rehearse plays a plan once, and, with more than one run, as many seeds from this one
// on. The caller fills in where the facts are from, and what was assumed.
func Rehearse(ctx context.Context, p Plan, seed uint64, runs int) (r Report, err error) {
	disk, err := store.OpenMemory(ctx)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	f, err := NewForecast(ctx, p, seed, disk)
	if err != nil {
		return Report{}, err
	}
	var outlook *Outlook
	if runs > 1 {
		o, err := NewOutlook(ctx, p, seed, runs, disk)
		if err != nil {
			return Report{}, err
		}
		outlook = &o
	}
	return NewReport(p, f, outlook), nil
}
