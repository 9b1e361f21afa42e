package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
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
				return a.deleted(deleteRollout(ctx, c, *t.rollout), "rollout", t.rollout.ID+"; the traffic split stays as it is")
			case t.endpoint != nil:
				return a.deleted(c.DeleteEndpoint(ctx, t.endpoint.ID, t.endpoint.ETag), "endpoint", t.endpoint.Name)
			}
			return a.deleted(c.DeleteDeployment(ctx, t.deployment.EndpointID, t.deployment.ID, t.deployment.ETag), "deployment", t.deployment.Name)
		},
	}
}

// deleteRollout deletes a record. The engine moves a rollout on by itself, so an etag
// that is a step old says nothing about people: without one the state alone decides.
func deleteRollout(ctx context.Context, c *engineclient.Client, r api.Rollout) error {
	err := c.DeleteRollout(ctx, r.EndpointID, r.ID, r.ETag)
	if engineclient.IsStale(err) {
		err = c.DeleteRollout(ctx, r.EndpointID, r.ID, "")
	}
	return err
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
