package api

// Endpoint is a stable name that clients call; its deployments serve it.
type Endpoint struct {
	ID              string              `json:"id"`   // ep_…
	Name            string              `json:"name"` // slug/name, the inference model name
	ProjectID       string              `json:"projectId"`
	EndpointType    string              `json:"endpointType"` // ENDPOINT_TYPE_DEDICATED
	Visibility      string              `json:"visibility"`   // VISIBILITY_PRIVATE or VISIBILITY_INTERNAL
	TrafficSplit    []TrafficWeight     `json:"trafficSplit"`
	Deployments     []DeploymentSummary `json:"deployments"` // the ten newest
	ActiveRolloutID string              `json:"activeRolloutId,omitempty"`
	ETag            string              `json:"etag"`
	CreatedAt       Time                `json:"createdAt"`
	UpdatedAt       Time                `json:"updatedAt"`
	Sluice          *EndpointExtra      `json:"sluice,omitempty"`
}

// EndpointExtra is what only Sluice's engine tells about an endpoint.
type EndpointExtra struct {
	GatewayURL        string       `json:"gatewayUrl,omitempty"`
	RequestsPerSecond *float64     `json:"requestsPerSecond,omitempty"` // over the last minute
	Serving           []ServedPart `json:"serving,omitempty"`           // set and actual shares
	Owner             *Owner       `json:"owner,omitempty"`             // who reconciles it
}

// Owner is who reconciles an endpoint, and since when.
type Owner struct {
	ID string `json:"id"`
	At Time   `json:"at"`
}

// ServedPart is one deployment's part of an endpoint's traffic.
type ServedPart struct {
	DeploymentID  string  `json:"deploymentId"`
	SetShare      float64 `json:"setShare"` // 0 to 1, what the routing table says
	Requests      int64   `json:"requests"` // that ended in the last minute
	ReadyReplicas int     `json:"readyReplicas"`
}

// TrafficWeight is one entry of a split. A weight is per ready replica: the share
// is weight × ready replicas over the sum of the split.
type TrafficWeight struct {
	DeploymentID string  `json:"deploymentId"`
	Weight       float64 `json:"weight"`
}

// Values of Endpoint.EndpointType and Visibility.
const (
	EndpointDedicated  = "ENDPOINT_TYPE_DEDICATED"
	VisibilityPrivate  = "VISIBILITY_PRIVATE"
	VisibilityInternal = "VISIBILITY_INTERNAL"
)

// CreateEndpoint is the body of POST …/endpoints.
type CreateEndpoint struct {
	Name       string `json:"name"`
	Visibility string `json:"visibility,omitempty"`
}

// UpdateEndpoint is the body of PATCH …/endpoints/{id}.
type UpdateEndpoint struct {
	ETag         string           `json:"etag,omitempty"`
	Name         *string          `json:"name,omitempty"`
	Visibility   *string          `json:"visibility,omitempty"`
	TrafficSplit *[]TrafficWeight `json:"trafficSplit,omitempty"`
	Sluice       *EndpointEdit    `json:"sluice,omitempty"`
}

// WhoAmI is the answer of GET /whoami; its names are snake_case by contract.
type WhoAmI struct {
	APIKeyID         string       `json:"api_key_id"`
	OrganizationID   string       `json:"organization_id"`
	OrganizationName string       `json:"organization_name"`
	ProjectID        string       `json:"project_id"`
	ProjectName      string       `json:"project_name"`
	ProjectSlug      string       `json:"project_slug"`
	UserID           string       `json:"user_id,omitempty"`
	Sluice           *WhoAmIExtra `json:"sluice,omitempty"`
}

// WhoAmIExtra tells a client that it talks to Sluice's own engine, with what it
// can do beyond the platform and the timings it runs by.
type WhoAmIExtra struct {
	Version      string   `json:"version"`
	Capabilities []string `json:"capabilities"`
	Scopes       []string `json:"scopes"`
	Timings      *Timings `json:"timings,omitempty"`
}

// Timings are an engine's configured waits.
type Timings struct {
	Propagation     Duration `json:"propagation"`
	IngestionLag    Duration `json:"ingestionLag"`
	DefaultWindow   Duration `json:"defaultWindow"`
	MinimumWindow   Duration `json:"minimumWindow"`
	DefaultInterval Duration `json:"defaultInterval"`
	Stabilization   Duration `json:"stabilization"`
	RetryInterval   Duration `json:"retryInterval"`
}
