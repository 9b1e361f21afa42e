package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// table writes aligned columns.
func (a *app) table(rows [][]string) error {
	return render.Table(a.Out, rows, a.options(time.Time{}))
}

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List endpoints", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := engineclient.Collect(c.Endpoints(cmd.Context(), engineclient.ListOptions{}))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := [][]string{{"ID", "NAME", "DEPLOYMENTS", "ACTIVE ROLLOUT"}}
			for _, ep := range all {
				rows = append(rows, []string{ep.ID, ep.Name, strconv.Itoa(len(ep.Deployments)), ep.ActiveRolloutID})
			}
			return a.table(rows)
		},
	}
}

func (a *app) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show an endpoint, a deployment or a rollout, by id or name", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			t, err := findThing(cmd.Context(), c, args[0])
			switch {
			case err != nil:
				return err
			case t.rollout != nil:
				return a.showRollout(cmd.Context(), c, *t.rollout)
			case t.endpoint != nil:
				return a.showEndpoint(cmd.Context(), c, *t.endpoint)
			}
			return a.showDeployment(*t.deployment)
		},
	}
}

func (a *app) showDeployment(d api.Deployment) error {
	if a.json {
		return a.printJSON(d)
	}
	return a.table([][]string{
		{"Deployment", d.Name + " (" + d.ID + ")"}, {"State", strings.TrimPrefix(d.Status.State, "DEPLOYMENT_STATE_") + " — " + d.Status.Message},
		{"Model", d.Model}, {"Config", d.ConfigID + " on " + d.Hardware}, {"Replicas", replicas(d.Autoscaling, d.Status.ReadyReplicas)},
	})
}

func replicas(s api.Autoscaling, ready int) string {
	low, high := 0, 0
	if s.MinReplicas != nil {
		low = *s.MinReplicas
	}
	if s.MaxReplicas != nil {
		high = *s.MaxReplicas
	}
	return fmt.Sprintf("%d ready, limits %d–%d", ready, low, high)
}

// endpointView is an endpoint with its active rollout, as --json prints it.
type endpointView struct {
	api.Endpoint
	Rollout *api.Rollout `json:"rollout,omitempty"`
}

func (a *app) showEndpoint(ctx context.Context, c *engineclient.Client, ep api.Endpoint) error {
	view := endpointView{Endpoint: ep}
	if ep.ActiveRolloutID != "" {
		if r, err := c.GetRollout(ctx, ep.ID, ep.ActiveRolloutID); err == nil {
			view.Rollout = &r
		}
	}
	if a.json {
		return a.printJSON(view)
	}
	a.printf("Endpoint %s (%s)\n", render.Inert(ep.Name), render.Inert(ep.ID))
	if ep.Sluice != nil && ep.Sluice.Owner != nil {
		a.printf("Owner %s, since %s\n", render.Inert(ep.Sluice.Owner.ID), ep.Sluice.Owner.At.UTC().Format(time.RFC3339))
	}
	a.printf("\n")
	rows := [][]string{{"DEPLOYMENT", "NAME", "STATE", "SHARE", "REPLICAS", "MODEL"}}
	for _, d := range ep.Deployments {
		rows = append(rows, []string{d.ID, d.Name, strings.TrimPrefix(d.State, "DEPLOYMENT_STATE_"), fmt.Sprintf("%.1f %%", d.EstimatedEffectiveTrafficShare*100), replicas(d.Autoscaling, d.ReadyReplicas), d.Model})
	}
	if err := a.table(rows); err != nil {
		return err
	}
	if view.Rollout == nil {
		return nil
	}
	a.printf("\n")
	return render.Rollout(a.Out, *view.Rollout, a.named(ep))
}

// named gives the renderer the deployments' names.
func (a *app) named(ep api.Endpoint) render.Options {
	o := a.options(time.Now())
	o.Names = map[string]string{}
	for _, d := range ep.Deployments {
		o.Names[d.ID] = d.Name[strings.LastIndex(d.Name, "/")+1:]
	}
	return o
}

func (a *app) showRollout(ctx context.Context, c *engineclient.Client, r api.Rollout) error {
	if a.json {
		return a.printJSON(r)
	}
	ep, err := c.GetEndpoint(ctx, r.EndpointID)
	if err != nil {
		return err
	}
	return render.Rollout(a.Out, r, a.named(ep))
}

func (a *app) watchCommand() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "watch ID",
		Short: "Follow a rollout until it is over or parked",
		Long: `Follow a rollout, one line a change, until it is COMPLETED (exit code 0), parked and
waiting for a person (3) or CANCELED (4). The id may be a rollout's, an endpoint's
or a name.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			r, err := findRollout(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			return a.await(ctx, cl, r)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up watching after this; the rollout goes on")
	return c
}

// await follows a rollout to its end or park and ends with that exit code.
func (a *app) await(ctx context.Context, c *engineclient.Client, r api.Rollout) error {
	res, err := c.Await(ctx, r.EndpointID, r.ID, progress{a})
	if err != nil {
		return interrupted(err)
	}
	if err := a.showRollout(ctx, c, res.Rollout); err != nil {
		return err
	}
	switch res.Outcome {
	case engineclient.WasParked:
		return &endedError{ExitParked}
	case engineclient.Canceled:
		return &endedError{ExitCanceled}
	case engineclient.Completed:
	}
	return nil
}

// interrupted says how a wait that was ended from here can be taken up again.
func interrupted(err error) error {
	var i *engineclient.Interrupted
	if !errors.As(err, &i) {
		return err
	}
	why := "the wait was interrupted"
	if errors.Is(err, context.DeadlineExceeded) {
		why = "the time to wait is over"
	}
	where := render.Progress(i.Last)
	if i.Last.State == "" {
		where = "not known"
	}
	return fmt.Errorf("%s; rollout %s goes on at the engine (%s). Wait again: sluice watch %s", why, i.Last.ID, where, i.Last.ID)
}

// progress writes one line a change.
type progress struct{ a *app }

// Changed writes what is new.
func (p progress) Changed(c engineclient.Change) {
	p.a.progressLine(c.Elapsed, render.Progress(c.After))
}

// Lost tells that the engine does not answer.
func (p progress) Lost(err error, elapsed time.Duration) {
	p.a.progressLine(elapsed, "the engine does not answer, still trying: "+err.Error())
}

func (a *app) eventsCommand() *cobra.Command {
	var q engineclient.EventQuery
	var limit int
	var follow bool
	c := &cobra.Command{
		Use: "events ENDPOINT", Short: "Show an endpoint's event feed, and follow it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			ep, err := findEndpoint(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			var rows []api.Event
			for e, err := range cl.Events(cmd.Context(), ep.ID, q) {
				if err != nil {
					return err
				}
				if rows = append(rows, e); len(rows) == limit {
					break
				}
			}
			if follow {
				return a.follow(cmd.Context(), cl, ep, q, rows)
			}
			if a.json {
				return a.printJSON(rows)
			}
			if len(rows) == 0 {
				return a.noEvents(cmd.Context(), cl, ep, q)
			}
			return render.Events(a.Out, rows, a.named(ep))
		},
	}
	f := c.Flags()
	f.StringVar(&q.SubjectID, "subject-id", "", "only about this rollout")
	f.StringSliceVar(&q.Types, "types", nil, "only these types, comma-separated")
	f.StringSliceVar(&q.DeploymentIDs, "deployment-ids", nil, "only about these deployments")
	f.StringVar(&q.MinLevel, "min-level", "", "LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN or LEVEL_ERROR")
	f.IntVar(&limit, "limit", 200, "rows at most, the newest")
	f.BoolVar(&follow, "follow", false, "go on with new rows until interrupted; with --json one line a row")
	return c
}

// noEvents says why a feed is empty: a type that is written wrong must not read like
// a quiet endpoint.
func (a *app) noEvents(ctx context.Context, c *engineclient.Client, ep api.Endpoint, q engineclient.EventQuery) error {
	const looked = 1000
	seen, n := map[string]bool{}, 0
	for e, err := range c.Events(ctx, ep.ID, engineclient.EventQuery{}) {
		if err != nil {
			return err
		}
		seen[e.Type] = true
		if n++; n == looked {
			break
		}
	}
	text := "no event of " + ep.Name + " matches"
	if len(q.Types) > 0 && len(seen) > 0 {
		text += "; the feed has the types " + strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
	}
	return render.Line(a.Err, render.Inert(text), a.options(time.Time{}))
}

func (a *app) hardwareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hardware", Short: "List the hardware types with what is free of them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := engineclient.Collect(c.Hardware(cmd.Context()))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := [][]string{{"ID", "GPUS", "¢/HOUR", "FREE", "DESCRIPTION"}}
			for _, h := range all {
				free := "no limit"
				if len(h.Regions) > 0 && h.Regions[0].Headroom != nil && h.Regions[0].Headroom.Value != nil {
					free = strconv.Itoa(*h.Regions[0].Headroom.Value)
				}
				rows = append(rows, []string{h.ID, fmt.Sprintf("%d × %s", h.GPUCount, h.GPUType), strconv.Itoa(h.PriceCentsPerHour), free, h.Description})
			}
			return a.table(rows)
		},
	}
}

func (a *app) configsCommand() *cobra.Command {
	var model string
	c := &cobra.Command{
		Use: "configs", Short: "List the serving configs that the operator declared", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			all, err := engineclient.Collect(cl.Configs(cmd.Context(), model))
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(all)
			}
			rows := [][]string{{"ID", "NAME", "MODELS"}}
			for _, sc := range all {
				models := []string{sc.ReferenceModel}
				if sc.Sluice != nil {
					models = sc.Sluice.Models
				}
				rows = append(rows, []string{sc.ID, sc.Name, strings.Join(models, ", ")})
			}
			return a.table(rows)
		},
	}
	c.Flags().StringVar(&model, "model", "", "only those that serve this model")
	return c
}
