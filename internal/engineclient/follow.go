package engineclient

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
)

// feedPoll is the time between two looks at the feed of an engine without streams.
const feedPoll = 2 * time.Second

// Follow tells an endpoint's events as they happen, oldest first, each once, until ctx
// ends or hear returns an error. It begins at q.Since, or now. Breaks and restarts are
// waited out; an engine that streams no events is polled.
func (c *Client) Follow(ctx context.Context, endpoint string, q EventQuery, hear func(api.Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &follower{hear: hear, stop: cancel}
	var err error
	if c.stream == nil {
		err = errNoStream
	} else {
		err = c.keepOpen(ctx, endpoint, q.values(), "", f)
	}
	if ctx.Err() == nil && err == errNoStream { //nolint:errorlint // never wrapped
		err = c.pollFeed(ctx, endpoint, q, f)
	}
	return causeOf(ctx, err)
}

// follower passes events on until its hearer has enough.
type follower struct {
	hear func(api.Event) error
	stop context.CancelCauseFunc
}

func (f *follower) opened() {}

func (f *follower) event(e api.Event) {
	if err := f.hear(e); err != nil {
		f.stop(err)
	}
}

// pollFeed reads the newest rows again and again. Rows of the last instant that was
// seen may still be joined by others, so they are read again and told once.
func (c *Client) pollFeed(ctx context.Context, endpoint string, q EventQuery, f *follower) error {
	told := map[string]bool{}
	if q.Since.IsZero() { // after the newest row, by the engine's clock
		for e, err := range c.Events(ctx, endpoint, q) {
			if err != nil {
				return err
			}
			told[e.ID], q.Since = true, e.CreatedAt.Time
			break
		}
	}
	for {
		rows, err := Collect(c.Events(ctx, endpoint, q))
		if err != nil && (isFinal(err) || ctx.Err() != nil) {
			return err
		}
		slices.Reverse(rows)
		for _, e := range rows {
			if !told[e.ID] {
				told[e.ID] = true
				f.event(e)
			}
			q.Since = e.CreatedAt.Time
		}
		if err := sleep(ctx, feedPoll); err != nil {
			return err
		}
	}
}
