package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// updateFlags are the words of "sluice update".
type updateFlags struct {
	low, high                  int
	weight                     float64
	lowSet, highSet, weightSet bool
	force                      bool
	breakGlass                 bool
	reason                     string
}

func (a *app) updateCommand() *cobra.Command {
	var f updateFlags
	c := &cobra.Command{
		Use: "update DEPLOYMENT", Short: "Change a deployment's limits or its weight in the split",
		Long: `Change a deployment's limits or its weight in the split. To stop one give
--min-replicas 0 --max-replicas 0; what still has traffic is stopped only with --force.

A split that a rollout holds is locked. With --break-glass and a --reason the weight is
set all the same, by a key that has the scope break-glass: the rollout parks, and neither
a hold nor a circuit breaker moves the split until somebody resumes it, which puts its
own split back, or cancels it, which keeps yours.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.lowSet, f.highSet, f.weightSet = cmd.Flags().Changed("min-replicas"), cmd.Flags().Changed("max-replicas"), cmd.Flags().Changed("traffic-weight")
			if err := f.check(); err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			d, err := findDeployment(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			if d, err = f.apply(cmd.Context(), cl, d); err != nil {
				return err
			}
			if err := a.showDeployment(d); err != nil || !f.breakGlass || a.json {
				return err
			}
			return a.afterBreakGlass(cmd.Context(), cl, d.EndpointID)
		},
	}
	fl := c.Flags()
	fl.IntVar(&f.low, "min-replicas", 0, "floor")
	fl.IntVar(&f.high, "max-replicas", 0, "ceiling")
	fl.Float64Var(&f.weight, "traffic-weight", 0, "weight of one ready replica in the split; 0 takes it out")
	fl.BoolVar(&f.breakGlass, "break-glass", false, "set the weight although a rollout holds the split; needs --reason and a key with the scope break-glass")
	fl.StringVar(&f.reason, "reason", "", "why the glass is broken; told in the feed and on the rollout")
	fl.BoolVar(&f.force, "force", false, "also when it takes the deployment that serves away from the traffic")
	return c
}

// check refuses what cannot be meant. An engine takes a floor of 0 alone as a stop,
// which reads like a step back to scaling from zero: here both limits must say so.
func (f updateFlags) check() error {
	switch {
	case !f.lowSet && !f.highSet && !f.weightSet:
		return usagef("nothing to change: give --min-replicas, --max-replicas or --traffic-weight")
	case f.lowSet && f.low == 0 && !f.highSet:
		return usagef("--min-replicas 0 alone would stop the deployment; to stop it say --max-replicas 0 too (a running one keeps at least 1)")
	case f.highSet && f.high == 0 && !f.lowSet:
		return usagef("--max-replicas 0 alone would stop the deployment; to stop it say --min-replicas 0 too")
	}
	switch {
	case f.breakGlass && !f.weightSet:
		return usagef("--break-glass edits the split: give --traffic-weight")
	case f.breakGlass && strings.TrimSpace(f.reason) == "":
		return usagef("--break-glass needs a --reason: it stands in the feed and on the rollout")
	case f.reason != "" && !f.breakGlass:
		return usagef("--reason goes with --break-glass")
	case f.weightSet:
		return checkWeight(f.weight)
	}
	return nil
}

func (f updateFlags) stops() bool { return f.lowSet && f.highSet && f.low == 0 && f.high == 0 }

func (f updateFlags) apply(ctx context.Context, c *engineclient.Client, d api.Deployment) (api.Deployment, error) {
	if err := f.checkTraffic(ctx, c, d); err != nil {
		return d, err
	}
	var scaling api.Autoscaling
	var mask []string
	if f.lowSet {
		scaling.MinReplicas, mask = &f.low, append(mask, "autoscaling.minReplicas")
	}
	if f.highSet {
		scaling.MaxReplicas, mask = &f.high, append(mask, "autoscaling.maxReplicas")
	}
	if len(mask) > 0 {
		var err error
		if d, err = c.UpdateDeployment(ctx, d.EndpointID, d.ID, strings.Join(mask, ","), api.UpdateDeployment{Autoscaling: &scaling}); err != nil {
			return d, err
		}
	}
	if f.weightSet {
		return d, f.setWeight(ctx, c, d)
	}
	return d, nil
}

// setWeight edits the split. One that a rollout holds is refused with the way in.
func (f updateFlags) setWeight(ctx context.Context, c *engineclient.Client, d api.Deployment) error {
	if f.breakGlass {
		_, err := c.BreakGlass(ctx, d.EndpointID, d.ID, f.weight, f.reason)
		return err
	}
	_, err := c.SetWeight(ctx, d.EndpointID, d.ID, f.weight)
	if !engineclient.IsConflict(err) {
		return err
	}
	if can, asked := c.Can(ctx, api.CapabilityBreakGlass); asked != nil || !can {
		return err
	}
	return fmt.Errorf("%w. In an emergency a key with the scope break-glass may edit it all the same: --break-glass --reason \"why\"; the rollout then parks", err)
}

// afterBreakGlass says what the edit did to the rollout that holds the split, and the
// ways on. Without one it was an edit like any other.
func (a *app) afterBreakGlass(ctx context.Context, c *engineclient.Client, endpoint string) error {
	r, found, err := c.ActiveRollout(ctx, endpoint)
	if err != nil || !found {
		return err
	}
	ep, err := c.GetEndpoint(ctx, endpoint)
	if err != nil {
		return err
	}
	return render.BrokenGlass(a.Out, r, a.named(ep))
}

// checkTraffic refuses, without --force, to stop what has traffic, or to take the
// weight of the only one that has.
func (f updateFlags) checkTraffic(ctx context.Context, c *engineclient.Client, d api.Deployment) error {
	share := 0.0
	if s := d.EstimatedEffectiveTrafficShare; s != nil {
		share = *s
	}
	leaves := f.weightSet && f.weight == 0
	if f.force || share <= 0 || !f.stops() && !leaves {
		return nil
	}
	ep, err := c.GetEndpoint(ctx, d.EndpointID)
	if err != nil {
		return err
	}
	alone := true
	for _, w := range ep.TrafficSplit {
		alone = alone && (w.DeploymentID == d.ID || w.Weight <= 0)
	}
	if !alone && !f.stops() {
		return nil
	}
	what := "stopping it takes that capacity away"
	if alone {
		what = fmt.Sprintf("without it every request to %s fails", ep.Name)
	}
	return fmt.Errorf("%s serves %.0f %% of %s: %s. Move the traffic first (sluice rollout TARGET --source %s …), or say --force", d.Name, share*100, ep.Name, what, d.ID)
}
