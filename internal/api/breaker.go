package api

// CircuitBreaker lets the engine take a target's traffic away by itself. Rules are
// thresholds on the target alone.
type CircuitBreaker struct {
	SignedBy string       `json:"signedBy"` // who answers for it
	Rules    []MetricRule `json:"rules"`
}

// BreakerTrip is what a circuit breaker did.
type BreakerTrip struct {
	At          Time   `json:"at"`
	Rule        int    `json:"rule"` // index
	SignedBy    string `json:"signedBy"`
	FromPercent int    `json:"fromPercent"`
	ToPercent   int    `json:"toPercent"`
}

// Drift is a split that a person set although a rollout holds it.
type Drift struct {
	SetPercent    int    `json:"setPercent"`    // what the rollout had set, of the pair, on the target
	ActualPercent int    `json:"actualPercent"` // what is served
	By            string `json:"by"`
	Reason        string `json:"reason"`
	At            Time   `json:"at"`
}

// EndpointEdit is what only Sluice's engine takes in an endpoint's update.
type EndpointEdit struct {
	BreakGlass *BreakGlass `json:"breakGlass,omitempty"`
	Owner      *OwnerEdit  `json:"owner,omitempty"`
}

// OwnerEdit claims or releases an endpoint: exactly one of both is the id of who asks. It
// is refused with 409 and the owner's id while another one has it.
type OwnerEdit struct {
	Claim   string `json:"claim,omitempty"`
	Release string `json:"release,omitempty"`
	Force   *Force `json:"force,omitempty"`
}

// Force takes an endpoint from its owner. It takes a key with the scope break-glass.
type Force struct {
	Reason string `json:"reason"`
}

// BreakGlass edits trafficSplit although a rollout holds it. It takes a key with the
// scope break-glass.
type BreakGlass struct {
	Reason string `json:"reason"`
}

// What an engine of ours can do beyond the platform, as whoami tells it.
const (
	CapabilityHoldSource     = "hold-source"
	CapabilityCircuitBreaker = "circuit-breaker"
	CapabilityBreakGlass     = "break-glass"
	CapabilityOwner          = "owner" // endpoints tell who reconciles them
)
