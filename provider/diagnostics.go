package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// addRefusal reports an error of a call: what was tried, what the engine said, and
// what helps. A field that the engine names becomes the attribute's path.
func addRefusal(diags *diag.Diagnostics, tried string, err error) {
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		title, detail := "Cannot "+tried, explain(refused)
		if refused.Param != "" {
			at := attributePath(refused.Param)
			if top := topLevel(at); !top.Equal(at) {
				title += ": " + at.String()
			}
			diags.AddAttributeError(topLevel(at), title, detail)
			return
		}
		diags.AddError(title, detail)
	case engineclient.IsUnreachable(err):
		diags.AddError("The engine does not answer", fmt.Sprintf("Cannot %s: %s. Check engine_url and that the engine runs.", tried, render.Inert(err.Error())))
	case errors.Is(err, context.Canceled):
		diags.AddError("Interrupted", fmt.Sprintf("The request to %s was interrupted before the engine answered.", tried))
	default:
		diags.AddError("Cannot "+tried, render.Inert(err.Error()))
	}
}

func explain(e *api.Error) string {
	detail := sentence(render.Inert(e.Message))
	switch e.Status {
	case 401:
		detail += " The engine does not know this API key; check api_key or SLUICE_API_KEY."
	case 403:
		detail += " The key lacks a scope; applies need operate."
	}
	return fmt.Sprintf("%s (HTTP %d)", detail, e.Status)
}

// notConfigured reports that a call needs a provider configuration which is not
// known.
func notConfigured(diags *diag.Diagnostics) {
	diags.AddError("The provider is not configured", "engine_url, api_key or project depends on something that is not known yet. Apply that first, for example with -target.")
}

// goneAfter is the pause before a 404 is asked about again.
const goneAfter = 300 * time.Millisecond

// readTwice reads a thing, and once more when the engine did not find it: one
// answer of 404 from a restarting engine or a proxy must not drop it from the state,
// since the next apply would make a second one. gone is true when both say so while
// the project itself is found: a 404 of a project says nothing about what is in it.
func readTwice[T any](ctx context.Context, c *engineclient.Client, get func() (T, error)) (thing T, gone bool, err error) {
	thing, err = get()
	if !engineclient.IsNotFound(err) {
		return thing, false, err
	}
	timer := time.NewTimer(goneAfter)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return thing, false, ctx.Err()
	case <-timer.C:
	}
	thing, err = get()
	if !engineclient.IsNotFound(err) {
		return thing, false, err
	}
	if wrong := c.VerifyProject(ctx); wrong != nil {
		return thing, false, wrong
	}
	return thing, true, err
}

// sameProject reports an error when a thing that is not found is, by its qualified
// name, of another project than the key's: at another engine, or with another
// project's key, everything reads like deleted.
func sameProject(ctx context.Context, c *engineclient.Client, qualified string) error {
	slug, _, ok := strings.Cut(qualified, "/")
	project, err := c.Project(ctx)
	if err != nil {
		return err
	}
	who, err := c.WhoAmI(ctx)
	if err != nil {
		return err
	}
	if !ok || who.ProjectSlug == "" || who.ProjectSlug == slug || who.ProjectID != project {
		return nil
	}
	return fmt.Errorf("the state is of project %s, and the engine at %s with this key is project %s (%s). Check engine_url, api_key and their environment variables; "+
		"if the project was renamed and this is gone for good, take it out with terraform state rm", slug, c.URL(), who.ProjectSlug, who.ProjectID)
}

// splitImportID cuts an import id into its parts.
func splitImportID(id string, wanted ...string) ([]string, error) {
	parts := strings.Split(id, "/")
	if len(parts) != len(wanted) {
		return nil, fmt.Errorf("%q is not of the form %s", id, strings.Join(wanted, "/"))
	}
	for i, p := range parts {
		if strings.TrimSpace(p) == "" {
			return nil, fmt.Errorf("%q has no %s", id, wanted[i])
		}
	}
	return parts, nil
}
