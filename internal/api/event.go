package api

// Event is one row of an endpoint's feed, newest first in lists.
type Event struct {
	ID                string      `json:"id"`
	CreatedAt         Time        `json:"createdAt"`
	EndpointID        string      `json:"endpointId"`
	DeploymentID      string      `json:"deploymentId,omitempty"`
	SubjectID         string      `json:"subjectId,omitempty"` // the rollout id on rollout.* rows
	Type              string      `json:"type"`                // for example rollout.traffic_shifted
	Level             string      `json:"level"`               // LEVEL_INFO …
	Source            string      `json:"source"`
	SourceKind        string      `json:"sourceKind"` // SOURCE_KIND_ENDPOINT or …_DEPLOYMENT
	Message           string      `json:"message,omitempty"`
	Name              string      `json:"name,omitempty"`
	Paths             []string    `json:"paths,omitempty"`
	OldReplicas       *int        `json:"oldReplicas,omitempty"`
	NewReplicas       *int        `json:"newReplicas,omitempty"`
	OldTrafficPercent *int        `json:"oldTrafficPercent,omitempty"`
	NewTrafficPercent *int        `json:"newTrafficPercent,omitempty"`
	Status            string      `json:"status,omitempty"`
	Reason            string      `json:"reason,omitempty"`
	Sluice            *EventExtra `json:"sluice,omitempty"`
}

// EventExtra is what only Sluice's engine tells about an event.
type EventExtra struct {
	Actor string `json:"actor,omitempty"` // the key that asked, by its name
	Step  *int   `json:"step,omitempty"`  // 0-based
}
