package cli

import (
	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

func (a *app) rmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID",
		Short: "Delete an endpoint, a stopped deployment, or the record of a rollout that is over or never started",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			t, err := findThing(ctx, c, args[0])
			switch {
			case err != nil:
				return err
			case t.several:
				return usagef("both endpoint %s (%s) and deployment %s (%s) are called %q: give the id", t.endpoint.Name, t.endpoint.ID, t.deployment.Name, t.deployment.ID, args[0])
			case t.rollout != nil:
				err = c.DeleteRollout(ctx, t.rollout.EndpointID, t.rollout.ID, t.rollout.ETag)
				return a.deleted(err, "rollout", t.rollout.ID+"; the traffic split stays as it is")
			case t.endpoint != nil:
				return a.deleted(c.DeleteEndpoint(ctx, t.endpoint.ID, t.endpoint.ETag), "endpoint", t.endpoint.Name)
			}
			return a.deleted(c.DeleteDeployment(ctx, t.deployment.EndpointID, t.deployment.ID, t.deployment.ETag), "deployment", t.deployment.Name)
		},
	}
}

func (a *app) deleted(err error, kind, name string) error {
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Deleted string `json:"deleted"`
		}{name})
	}
	a.printf("deleted %s %s\n", kind, render.Inert(name))
	return nil
}
