package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// deployFlags are the words of "sluice deploy".
type deployFlags struct {
	endpoint, config, name string
	low, high              int
	weight                 float64
	noWait                 bool
	timeout                time.Duration
}

func (a *app) deployCommand() *cobra.Command {
	var f deployFlags
	c := &cobra.Command{
		Use:   "deploy MODEL --endpoint NAME",
		Short: "Deploy a model on an endpoint, making the endpoint when there is none of that name",
		Long: `Deploy a model on an endpoint, making the endpoint when there is none of that name,
and wait until the deployment is READY: with a weight, until it has traffic. An
endpoint that was made for a deployment which is then refused is deleted again.`,
		Example: `  sluice deploy demo/qwen2.5-7b --endpoint chat --traffic-weight 1
  sluice deploy demo/qwen3.5-9b --endpoint chat --min-replicas 0 --max-replicas 0   # a target for a rollout`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkWeight(f.weight); err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			d, err := f.deploy(cmd, cl, args[0])
			if err != nil {
				return err
			}
			if !f.noWait {
				if d, err = a.awaitReady(cmd.Context(), cl, d, f); err != nil {
					return err
				}
			}
			return a.showDeployment(d)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.endpoint, "endpoint", "", "endpoint's name or id")
	fl.StringVar(&f.config, "config", "", "serving config, cr_…; needed when several serve the model")
	fl.StringVar(&f.name, "deployment-name", "", "name (default from the model)")
	fl.IntVar(&f.low, "min-replicas", 1, "floor; 0 with a maximum of 0 makes it stopped")
	fl.IntVar(&f.high, "max-replicas", 1, "ceiling (default the floor)")
	fl.Float64Var(&f.weight, "traffic-weight", 0, "weight of one ready replica in the split")
	fl.BoolVar(&f.noWait, "no-wait", false, "return at once, without waiting until it is READY")
	fl.DurationVar(&f.timeout, "timeout", 0, "give up waiting after this; the deployment stays (default no limit)")
	_ = c.MarkFlagRequired("endpoint") // the flag exists
	return c
}

func checkWeight(w float64) error {
	if w < 0 || math.IsNaN(w) || math.IsInf(w, 0) {
		return usagef("--traffic-weight %v: a weight is a finite number from 0 up", w)
	}
	return nil
}

// deploy makes the endpoint if need be, the deployment, and its weight. What it made
// for a deployment that is refused it takes away again.
func (f deployFlags) deploy(cmd *cobra.Command, c *engineclient.Client, model string) (api.Deployment, error) {
	ctx := cmd.Context()
	ep, err := findEndpoint(ctx, c, f.endpoint)
	var absent *absentError
	made := errors.As(err, &absent)
	if made {
		ep, err = c.CreateEndpoint(ctx, api.CreateEndpoint{Name: f.endpoint}, "")
	}
	if err != nil {
		return api.Deployment{}, err
	}
	d, err := c.CreateDeployment(ctx, ep.ID, f.body(cmd, model), "")
	if err != nil {
		// A refusal is certain; after a lost answer the deployment may exist.
		if made && !engineclient.IsUnreachable(err) {
			if undo := c.DeleteEndpoint(context.WithoutCancel(ctx), ep.ID, ep.ETag); undo != nil {
				return d, fmt.Errorf("%w (endpoint %s was made for it and could not be deleted again: %w)", err, ep.Name, undo)
			}
		}
		return d, err
	}
	if cmd.Flags().Changed("traffic-weight") {
		if _, err := c.SetWeight(ctx, ep.ID, d.ID, f.weight); err != nil {
			return d, fmt.Errorf("deployment %s (%s) is made, but it has no weight: %w. Later: sluice update %s --traffic-weight %v", d.Name, d.ID, err, d.ID, f.weight)
		}
	}
	return d, nil
}

func (f deployFlags) body(cmd *cobra.Command, model string) api.CreateDeployment {
	body := api.CreateDeployment{Name: f.name, Model: model, Config: f.config}
	if body.Name == "" {
		body.Name = strings.ToLower(model[strings.LastIndex(model, "/")+1:])
	}
	if cmd.Flags().Changed("min-replicas") {
		body.Autoscaling.MinReplicas = &f.low
	}
	if cmd.Flags().Changed("max-replicas") {
		body.Autoscaling.MaxReplicas = &f.high
	}
	return body
}

// readyPoll is the time between two looks at a deployment that starts.
const readyPoll = 300 * time.Millisecond

// awaitReady waits until a deployment serves: READY, and with a weight routed to. A
// stopped one is what was asked for. One that cannot be placed for want of capacity
// is reported at once, since nothing here will free any.
func (a *app) awaitReady(ctx context.Context, c *engineclient.Client, d api.Deployment, f deployFlags) (api.Deployment, error) {
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	began, told := time.Now(), ""
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		switch {
		case d.Status.State == api.DeploymentStopped || served(d, f.weight):
			return d, nil
		case d.Status.State == api.DeploymentDegraded && d.Status.ScheduledReplicas < wanted(d) && strings.Contains(d.Status.Message, "capacity"):
			return d, fmt.Errorf("deployment %s (%s) is made, but not all of its replicas fit: %s. \"sluice hardware\" shows what is free; sluice update %s --min-replicas N --max-replicas N makes it smaller", d.Name, d.ID, d.Status.Message, d.ID)
		}
		if now := deploymentLine(d); now != told {
			told = now
			a.progressLine(time.Since(began), now)
		}
		select {
		case <-ctx.Done():
			return d, fmt.Errorf("the wait ended while deployment %s (%s) was %s; it stays and goes on starting: sluice get %s", d.Name, d.ID, deploymentLine(d), d.ID)
		case <-tick.C:
		}
		next, err := c.GetDeployment(ctx, d.EndpointID, d.ID)
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			return d, err
		}
		d = next
	}
}

// served reports whether a deployment answers: with a weight, through its endpoint.
func served(d api.Deployment, weight float64) bool {
	if d.Status.State != api.DeploymentReady {
		return false
	}
	return weight <= 0 || d.EstimatedEffectiveTrafficShare == nil || *d.EstimatedEffectiveTrafficShare > 0
}

func wanted(d api.Deployment) int {
	if d.Autoscaling.MinReplicas == nil {
		return 1
	}
	return *d.Autoscaling.MinReplicas
}

func deploymentLine(d api.Deployment) string {
	line := strings.TrimPrefix(d.Status.State, "DEPLOYMENT_STATE_")
	if d.Status.Message != "" {
		line += " — " + d.Status.Message
	}
	return line
}

// progressLine tells people, not scripts, what a wait sees.
func (a *app) progressLine(elapsed time.Duration, text string) {
	_ = render.Line(a.Err, fmt.Sprintf("%8s  %s", render.Waited(elapsed), render.Inert(text)), a.options(time.Time{}))
}
