package api

// Analytics sums up an endpoint's traffic. Counts of 64 bits are strings by
// contract.
type Analytics struct {
	EndpointID          string                `json:"endpointId"`
	TimeRange           TimeRange             `json:"timeRange"` // as far as the engine's memory reaches
	Metrics             AnalyticsMetrics      `json:"metrics"`
	DeploymentAnalytics []DeploymentAnalytics `json:"deploymentAnalytics"`
}

// DeploymentAnalytics is one deployment's part.
type DeploymentAnalytics struct {
	DeploymentID string           `json:"deploymentId"`
	EndpointID   string           `json:"endpointId"`
	TimeRange    TimeRange        `json:"timeRange"`
	Metrics      AnalyticsMetrics `json:"metrics"`
}

// TimeRange is closed at its start and open at its end.
type TimeRange struct {
	StartTime Time `json:"startTime"`
	EndTime   Time `json:"endTime"`
}

// AnalyticsMetrics are the numbers that the gateway measures.
type AnalyticsMetrics struct {
	EndpointID     string          `json:"endpointId"`
	DeploymentID   string          `json:"deploymentId,omitempty"`
	RequestMetrics RequestMetrics  `json:"requestMetrics"`
	ErrorMetrics   ErrorMetrics    `json:"errorMetrics"`
	LatencyMetrics *LatencyMetrics `json:"latencyMetrics,omitempty"` // of one deployment only
}

// RequestMetrics are counts and rates.
type RequestMetrics struct {
	TotalRequests      string  `json:"totalRequests"`
	SuccessfulRequests string  `json:"successfulRequests"`
	FailedRequests     string  `json:"failedRequests"`
	RequestsPerSecond  float64 `json:"requestsPerSecond"`
}

// ErrorMetrics is the error rate, 0 to 1.
type ErrorMetrics struct {
	ErrorRate float64 `json:"errorRate"`
}

// LatencyMetrics are percentiles in milliseconds.
type LatencyMetrics struct {
	LatencyP50Ms float64 `json:"latencyP50Ms"`
	LatencyP99Ms float64 `json:"latencyP99Ms"`
}
