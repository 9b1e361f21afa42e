package reconciler

import (
	"context"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// fetching lets so many calls fetch objects at once, over all repositories. Listing refs is
// cheap and never waits, so that a host that hangs in a fetch holds no one else's poll. The
// stretches of history that were read last are kept: all stacks of a repository ask for
// the same one.
type fetching struct {
	gitsource.Remote
	slots chan struct{}
	logs  map[stretch]gitsource.Log
}

// stretch is what a log was asked for.
type stretch struct {
	from, to string
	most     int
}

// mostLogs bounds how many stretches are kept.
const mostLogs = 16

func (f fetching) enter(ctx context.Context) error {
	select {
	case f.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f fetching) leave() { <-f.slots }

// Read fetches one commit.
func (f fetching) Read(ctx context.Context, at gitsource.Resolved) (gitsource.Snapshot, error) {
	if err := f.enter(ctx); err != nil {
		return gitsource.Snapshot{}, err
	}
	defer f.leave()
	return f.Remote.Read(ctx, at)
}

// Merge reads a merge result.
func (f fetching) Merge(ctx context.Context, base, head string) (gitsource.Snapshot, error) {
	if err := f.enter(ctx); err != nil {
		return gitsource.Snapshot{}, err
	}
	defer f.leave()
	return f.Remote.Merge(ctx, base, head)
}

// Log lists commits. Both ends are commits, so that what was read once stays true.
func (f fetching) Log(ctx context.Context, from, to string, most int) (gitsource.Log, error) {
	asked := stretch{from, to, most}
	if log, ok := f.logs[asked]; ok {
		return log, nil
	}
	if err := f.enter(ctx); err != nil {
		return gitsource.Log{}, err
	}
	defer f.leave()
	log, err := f.Remote.Log(ctx, from, to, most)
	if err == nil {
		if len(f.logs) >= mostLogs {
			clear(f.logs)
		}
		f.logs[asked] = log
	}
	return log, err
}
