package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// reconcileReleaseCommand frees an endpoint whose owner is gone. Unlike the verbs beside
// it, it asks the engine: the reconciler that could be asked may be the one that is gone.
func (a *app) reconcileReleaseCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "release ENDPOINT", Short: "At the engine: take an endpoint from its owner, so that another may claim it",
		Long: `Take an endpoint from its owner, so that the next pass of another reconciler claims it:
after a journal is lost, or a stack is given up or moved. It asks the engine, not the
reconciler, and takes a key with the scope break-glass. A reconciler that still has the
endpoint in its stack claims it again; end it, or take the endpoint out, first.`,
		Example: `  sluice reconcile release chat --reason "its journal is lost"`,
		Args:    exactWords,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usagef("say why the endpoint is taken from its owner: --reason \"why\"; it stands in the feed")
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			ep, err := findEndpoint(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			if ep.Sluice == nil || ep.Sluice.Owner == nil {
				a.printf("%s has no owner\n", ep.Name)
				return nil
			}
			if _, err := cl.FreeEndpoint(cmd.Context(), ep.ID, reason); err != nil {
				return err
			}
			a.printf("%s belonged to %s, and has no owner now\n", ep.Name, render.Inert(ep.Sluice.Owner.ID))
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why; told in the feed")
	return c
}
