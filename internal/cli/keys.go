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

func (a *app) keysCommand() *cobra.Command {
	c := &cobra.Command{Use: "keys", Short: "List, make and revoke API keys (needs the scope admin)", Args: cobra.NoArgs, RunE: a.listKeys}
	c.AddCommand(
		&cobra.Command{Use: "ls", Short: "List the keys, without their secrets", Args: cobra.NoArgs, RunE: a.listKeys},
		a.createKeyCommand(), a.revokeKeyCommand(),
	)
	return c
}

func (a *app) listKeys(cmd *cobra.Command, _ []string) error {
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

func (a *app) createKeyCommand() *cobra.Command {
	var scopes []string
	c := &cobra.Command{Use: "create NAME", Short: "Make a key; its secret is printed once", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
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
		a.printf("Key:     %s (%s), scopes %s\nAPI key: %s\n", render.Inert(k.ID), render.Inert(k.Name), render.Inert(strings.Join(k.Scopes, ", ")), render.Inert(k.Secret))
		return nil
	}}
	c.Flags().StringSliceVar(&scopes, "scopes", []string{"read"}, "read, operate, admin or break-glass; no other scope includes break-glass")
	return c
}

func (a *app) revokeKeyCommand() *cobra.Command {
	return &cobra.Command{Use: "rm ID", Short: "Revoke a key at once, by its id or a name that one key has", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		k, err := findKey(cmd.Context(), cl, args[0])
		if err != nil {
			return err
		}
		return a.deleted(cl.DeleteKey(cmd.Context(), k.ID), "key", k.Name+" ("+k.ID+")")
	}}
}

// findKey reads a key by its id or name. A name that several have is refused: the
// wrong one would lock somebody out.
func findKey(ctx context.Context, c *engineclient.Client, ref string) (api.Key, error) {
	var named []api.Key
	for k, err := range c.Keys(ctx) {
		if err != nil {
			return k, err
		}
		if k.ID == ref {
			return k, nil
		}
		if k.Name == ref {
			named = append(named, k)
		}
	}
	switch len(named) {
	case 0:
		return api.Key{}, fmt.Errorf("no key %q; \"sluice keys\" lists them", ref)
	case 1:
		return named[0], nil
	}
	ids := make([]string, 0, len(named))
	for _, k := range named {
		ids = append(ids, k.ID)
	}
	return api.Key{}, usagef("several keys are called %q: give one of %s", ref, strings.Join(ids, ", "))
}
