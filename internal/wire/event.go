package wire

import (
	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// EventToAPI tells one row of an endpoint's feed. The source is the deployment
// that the row is about, or the endpoint.
func EventToAPI(e rollout.Event) api.Event {
	out := api.Event{
		ID:                e.ID,
		CreatedAt:         api.At(e.At),
		EndpointID:        e.EndpointID,
		DeploymentID:      e.Deployment,
		SubjectID:         e.Subject,
		Type:              string(e.Type),
		Level:             api.PrefixLevel + string(e.Level),
		Source:            e.EndpointID,
		SourceKind:        api.PrefixSourceKind + "ENDPOINT",
		Message:           e.Message,
		Name:              e.Name,
		Paths:             e.Paths,
		OldReplicas:       e.OldReplica,
		NewReplicas:       e.NewReplica,
		OldTrafficPercent: e.OldPercent,
		NewTrafficPercent: e.NewPercent,
		Status:            e.Status,
		Reason:            e.Reason,
	}
	if e.Deployment != "" {
		out.Source, out.SourceKind = e.Deployment, api.PrefixSourceKind+"DEPLOYMENT"
	}
	if e.Actor != "" || e.Step != nil {
		out.Sluice = &api.EventExtra{Actor: e.Actor, Step: e.Step}
	}
	return out
}
