package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// A create whose name is taken is not adopted by itself, since two configurations
// would then share one thing without a word. But it may well be what an earlier apply
// made before it was killed: the error names it and says how to take it in.

func taken(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == api.CodeAlreadyExists
}

func addTaken(diags *diag.Diagnostics, kind, name, id string) {
	diags.AddError(fmt.Sprintf("There is already %s %s %q", map[string]string{"endpoint": "an", "deployment": "a"}[kind], kind, name),
		fmt.Sprintf("It is %s. If an earlier apply of this configuration made it and was cut off before the state was written, take it in:\n\n"+
			"  import {\n    to = sluice_%s.NAME   # this resource\n    id = %q\n  }\n\n"+
			"Otherwise it is somebody else's: choose another name.", id, kind, id))
}

// endpointTaken names the endpoint that has the name.
func (e *engine) endpointTaken(ctx context.Context, diags *diag.Diagnostics, name string, cause error) {
	for ep, err := range e.client.Endpoints(ctx, engineclient.ListOptions{}) {
		if err != nil {
			break
		}
		if strings.HasSuffix(ep.Name, "/"+name) {
			addTaken(diags, "endpoint", name, ep.ID)
			return
		}
	}
	addRefusal(diags, "create endpoint "+name, cause)
}

// deploymentTaken names the deployment of the endpoint that has the name.
func (e *engine) deploymentTaken(ctx context.Context, diags *diag.Diagnostics, endpoint, name string, cause error) {
	for d, err := range e.client.Deployments(ctx, endpoint, engineclient.ListOptions{}) {
		if err != nil {
			break
		}
		if strings.HasSuffix(d.Name, "/"+name) {
			addTaken(diags, "deployment", name, endpoint+"/"+d.ID)
			return
		}
	}
	addRefusal(diags, "create deployment "+name, cause)
}
