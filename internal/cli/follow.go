package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// follow prints the rows that were read, newest first, and then each new one, until it
// is interrupted, which is its ordinary end.
func (a *app) follow(ctx context.Context, c *engineclient.Client, ep api.Endpoint, q engineclient.EventQuery, rows []api.Event) error {
	told := map[string]bool{}
	hear := func(e api.Event) error {
		if told[e.ID] {
			return nil
		}
		told[e.ID] = true
		if !a.json {
			return render.Events(a.Out, []api.Event{e}, a.named(ep))
		}
		line, err := json.Marshal(e)
		if err == nil {
			_, err = a.Out.Write(append(line, '\n'))
		}
		return err
	}
	for _, e := range slices.Backward(rows) {
		if err := hear(e); err != nil {
			return err
		}
		q.Since = e.CreatedAt.Time // rows of the same instant may follow
	}
	if err := c.Follow(ctx, ep.ID, q, hear); ctx.Err() == nil {
		return err
	}
	return nil
}
