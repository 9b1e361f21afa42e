package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

func (a *app) deployCommand() *cobra.Command {
	var endpoint, config, name string
	var low, high int
	var weight float64
	c := &cobra.Command{
		Use:   "deploy MODEL --endpoint NAME",
		Short: "Deploy a model on an endpoint, making the endpoint when there is none of that name",
		Example: `  sluice deploy demo/qwen2.5-7b --endpoint chat --traffic-weight 1
  sluice deploy demo/qwen3.5-9b --endpoint chat --min-replicas 0 --max-replicas 0   # a target for a rollout`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			ep, err := findEndpoint(ctx, cl, endpoint)
			var absent *absentError
			if errors.As(err, &absent) {
				ep, err = cl.CreateEndpoint(ctx, api.CreateEndpoint{Name: endpoint}, "")
			}
			if err != nil {
				return err
			}
			if name == "" {
				name = strings.ToLower(args[0][strings.LastIndex(args[0], "/")+1:])
			}
			body := api.CreateDeployment{Name: name, Model: args[0], Config: config}
			if cmd.Flags().Changed("min-replicas") {
				body.Autoscaling.MinReplicas = &low
			}
			if cmd.Flags().Changed("max-replicas") {
				body.Autoscaling.MaxReplicas = &high
			}
			d, err := cl.CreateDeployment(ctx, ep.ID, body, "")
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("traffic-weight") {
				if _, err := cl.SetWeight(ctx, ep.ID, d.ID, weight); err != nil {
					return err
				}
			}
			return a.showDeployment(d)
		},
	}
	f := c.Flags()
	f.StringVar(&endpoint, "endpoint", "", "endpoint's name or id")
	f.StringVar(&config, "config", "", "serving config, cr_…; needed when several serve the model")
	f.StringVar(&name, "deployment-name", "", "name (default from the model)")
	f.IntVar(&low, "min-replicas", 1, "floor; 0 with a maximum of 0 makes it stopped")
	f.IntVar(&high, "max-replicas", 1, "ceiling (default the floor)")
	f.Float64Var(&weight, "traffic-weight", 0, "weight of one ready replica in the split")
	_ = c.MarkFlagRequired("endpoint") // the flag exists
	return c
}

func (a *app) updateCommand() *cobra.Command {
	var low, high int
	var weight float64
	c := &cobra.Command{
		Use: "update DEPLOYMENT", Short: "Change a deployment's limits or its weight in the split", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			d, err := findDeployment(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			var scaling api.Autoscaling
			var mask []string
			if cmd.Flags().Changed("min-replicas") {
				scaling.MinReplicas, mask = &low, append(mask, "autoscaling.minReplicas")
			}
			if cmd.Flags().Changed("max-replicas") {
				scaling.MaxReplicas, mask = &high, append(mask, "autoscaling.maxReplicas")
			}
			if len(mask) == 0 && !cmd.Flags().Changed("traffic-weight") {
				return usagef("nothing to change: give --min-replicas, --max-replicas or --traffic-weight")
			}
			if len(mask) > 0 {
				if d, err = cl.UpdateDeployment(cmd.Context(), d.EndpointID, d.ID, strings.Join(mask, ","), api.UpdateDeployment{Autoscaling: &scaling}); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("traffic-weight") {
				if _, err := cl.SetWeight(cmd.Context(), d.EndpointID, d.ID, weight); err != nil {
					return err
				}
			}
			return a.showDeployment(d)
		},
	}
	f := c.Flags()
	f.IntVar(&low, "min-replicas", 0, "floor")
	f.IntVar(&high, "max-replicas", 0, "ceiling")
	f.Float64Var(&weight, "traffic-weight", 0, "weight of one ready replica in the split; 0 takes it out")
	return c
}

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
			ctx, id := cmd.Context(), args[0]
			switch {
			case strings.HasPrefix(id, "rol_"):
				r, err := findRollout(ctx, c, id)
				if err != nil {
					return err
				}
				err = c.DeleteRollout(ctx, r.EndpointID, r.ID, r.ETag)
				return a.deleted(err, "rollout", r.ID+"; the traffic split stays as it is")
			case strings.HasPrefix(id, "dep_"):
				d, err := findDeployment(ctx, c, id)
				if err != nil {
					return err
				}
				return a.deleted(c.DeleteDeployment(ctx, d.EndpointID, d.ID, d.ETag), "deployment", d.Name)
			}
			ep, err := findEndpoint(ctx, c, id)
			if err != nil {
				return err
			}
			return a.deleted(c.DeleteEndpoint(ctx, ep.ID, ep.ETag), "endpoint", ep.Name)
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

func (a *app) keysCommand() *cobra.Command {
	c := &cobra.Command{Use: "keys", Short: "List, make and revoke API keys (needs the scope admin)", Args: cobra.NoArgs}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		all, err := engineclient.Collect(cl.Keys(cmd.Context()))
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(all)
		}
		rows := [][]string{{"ID", "NAME", "SCOPES", "CREATED"}}
		for _, k := range all {
			rows = append(rows, []string{k.ID, k.Name, strings.Join(k.Scopes, ","), k.CreatedAt.Format("2006-01-02 15:04")})
		}
		return a.table(rows)
	}
	var scopes []string
	create := &cobra.Command{Use: "create NAME", Short: "Make a key; its secret is printed once", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		k, err := cl.CreateKey(cmd.Context(), api.CreateKey{Name: args[0], Scopes: scopes})
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(k)
		}
		a.printf("API key: %s\n", render.Inert(k.Secret))
		return nil
	}}
	create.Flags().StringSliceVar(&scopes, "scopes", []string{"read"}, "read, operate or admin")
	rm := &cobra.Command{Use: "rm ID", Short: "Revoke a key at once", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.deleted(cl.DeleteKey(cmd.Context(), args[0]), "key", args[0])
	}}
	c.AddCommand(create, rm)
	return c
}
