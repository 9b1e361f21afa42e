package api

// Deployment is one model, served by replicas of one config.
type Deployment struct {
	ID                             string           `json:"id"`   // dep_…
	Name                           string           `json:"name"` // slug/endpoint/deployment
	EndpointID                     string           `json:"endpointId"`
	ProjectID                      string           `json:"projectId"`
	Autoscaling                    Autoscaling      `json:"autoscaling"`
	Config                         string           `json:"config"` // projects/{p}/configs/{cr}
	ConfigID                       string           `json:"configId"`
	Hardware                       string           `json:"hardware"`
	Model                          string           `json:"model"`
	ModelID                        string           `json:"modelId"`
	ModelRevisionID                string           `json:"modelRevisionId"`
	Status                         DeploymentStatus `json:"status"`
	TrafficMode                    string           `json:"trafficMode"`
	DesiredReplicas                *int             `json:"desiredReplicas,omitempty"`
	EstimatedEffectiveTrafficShare *float64         `json:"estimatedEffectiveTrafficShare,omitempty"`
	EnableLora                     bool             `json:"enableLora,omitempty"`
	ETag                           string           `json:"etag"`
	CreatedAt                      Time             `json:"createdAt"`
	UpdatedAt                      Time             `json:"updatedAt"`
	Sluice                         *DeploymentExtra `json:"sluice,omitempty"`
}

// DeploymentExtra is what only Sluice's engine tells about a deployment.
type DeploymentExtra struct {
	Replicas []ReplicaStatus `json:"replicas,omitempty"`
}

// ReplicaStatus is one replica in a DeploymentExtra.
type ReplicaStatus struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	Since   Time   `json:"since"`
}

// DeploymentStatus is where the replicas of a deployment are.
type DeploymentStatus struct {
	State             string `json:"state"` // DEPLOYMENT_STATE_…
	Message           string `json:"message"`
	ReadyReplicas     int    `json:"readyReplicas,omitempty"`
	ScheduledReplicas int    `json:"scheduledReplicas,omitempty"`
}

// DeploymentSummary is a deployment inside an Endpoint.
type DeploymentSummary struct {
	ID                             string      `json:"id"`
	Name                           string      `json:"name"`
	State                          string      `json:"state"`
	Autoscaling                    Autoscaling `json:"autoscaling"`
	CreatedAt                      Time        `json:"createdAt"`
	Model                          string      `json:"model"`
	ModelID                        string      `json:"modelId"`
	TrafficMode                    string      `json:"trafficMode"`
	EstimatedEffectiveTrafficShare float64     `json:"estimatedEffectiveTrafficShare"` // 0 to 1
	DesiredReplicas                int         `json:"desiredReplicas,omitempty"`
	ReadyReplicas                  int         `json:"readyReplicas,omitempty"`
	Hardware                       string      `json:"hardware,omitempty"`
}

// Values of DeploymentStatus.State.
const (
	DeploymentProvisioning = "DEPLOYMENT_STATE_PROVISIONING"
	DeploymentScaling      = "DEPLOYMENT_STATE_SCALING"
	DeploymentReady        = "DEPLOYMENT_STATE_READY"
	DeploymentDegraded     = "DEPLOYMENT_STATE_DEGRADED"
	DeploymentStopping     = "DEPLOYMENT_STATE_STOPPING"
	DeploymentStopped      = "DEPLOYMENT_STATE_STOPPED"
	DeploymentFailed       = "DEPLOYMENT_STATE_FAILED"

	TrafficModeLive = "TRAFFIC_MODE_LIVE"
)

// Autoscaling bounds a deployment's replicas. Fields that are nil were not given.
// The windows and metrics of the platform's autoscaler are kept as given.
type Autoscaling struct {
	MinReplicas       *int            `json:"minReplicas,omitempty"`
	MaxReplicas       *int            `json:"maxReplicas,omitempty"`
	ScaleUpWindow     *Duration       `json:"scaleUpWindow,omitempty"`
	ScaleDownWindow   *Duration       `json:"scaleDownWindow,omitempty"`
	ScaleToZeroWindow *Duration       `json:"scaleToZeroWindow,omitempty"`
	ScalingMetrics    []ScalingMetric `json:"scalingMetrics,omitempty"`
}

// ScalingMetric is one target of the autoscaler; a catalogue of its own, apart
// from the gates'.
type ScalingMetric struct {
	Name       string  `json:"name"`
	Target     float64 `json:"target"`
	Type       string  `json:"type"`
	Percentile *int    `json:"percentile,omitempty"`
}

// CreateDeployment is the body of POST …/deployments.
type CreateDeployment struct {
	Name            string      `json:"name"`
	Autoscaling     Autoscaling `json:"autoscaling"`
	Model           string      `json:"model,omitempty"`
	Config          string      `json:"config,omitempty"`
	ModelID         string      `json:"modelId,omitempty"`
	ModelRevisionID string      `json:"modelRevisionId,omitempty"`
	ConfigID        string      `json:"configId,omitempty"`
	EnableLora      bool        `json:"enableLora,omitempty"`
}

// UpdateDeployment is the body of PATCH …/deployments/{id}.
type UpdateDeployment struct {
	ETag        string       `json:"etag,omitempty"`
	Name        *string      `json:"name,omitempty"`
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
}
