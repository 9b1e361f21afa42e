package api

// RolloutSpec is the body of create and preview: what a caller asks for.
type RolloutSpec struct {
	SourceDeploymentID  string       `json:"sourceDeploymentId"`
	TargetDeploymentID  string       `json:"targetDeploymentId"`
	Canary              *Canary      `json:"canary,omitempty"`
	BlueGreen           *BlueGreen   `json:"blueGreen,omitempty"`
	Rolling             *Rolling     `json:"rolling,omitempty"`
	Metrics             []MetricRule `json:"metrics,omitempty"` // canary only
	FinalSourceReplicas *int         `json:"finalSourceReplicas,omitempty"`
	FinalTargetReplicas *int         `json:"finalTargetReplicas,omitempty"`
	Sluice              *SpecExtra   `json:"sluice,omitempty"`
}

// SpecExtra is what only Sluice's engine takes in a spec.
type SpecExtra struct {
	Digest string `json:"digest,omitempty"` // of the spec that a door planned; kept and shown, so a retry finds its first try
	Origin string `json:"origin,omitempty"` // who asked: a commit, a pull request, a workspace

	HoldSource     bool            `json:"holdSourceUntilComplete,omitempty"` // keep the source whole until the last gate
	CircuitBreaker *CircuitBreaker `json:"circuitBreaker,omitempty"`          // an automatic way back; implies holdSourceUntilComplete
}

// Canary moves traffic in staged percents.
type Canary struct {
	Steps        []CanaryStep `json:"steps,omitempty"` // default 5, 25, 50, 100
	StepInterval *Duration    `json:"stepInterval,omitempty"`
}

// CanaryStep is one rung of a ladder.
type CanaryStep struct {
	Traffic  int  `json:"traffic"`            // percent of the pair on the target
	Replicas *int `json:"replicas,omitempty"` // target count of the step; default from the traffic
}

// BlueGreen is one cut-over from 0 to 100.
type BlueGreen struct{}

// Rolling swaps replica by replica.
type Rolling struct{}

// MetricRule is one gate: exactly one of the two checks.
type MetricRule struct {
	Name            string           `json:"name"`
	Stat            string           `json:"stat,omitempty"`
	Percentile      *int             `json:"percentile,omitempty"`
	Window          *Duration        `json:"window,omitempty"`
	RegressionCheck *RegressionCheck `json:"regressionCheck,omitempty"`
	ThresholdCheck  *ThresholdCheck  `json:"thresholdCheck,omitempty"`
}

// RegressionCheck compares the target with the source.
type RegressionCheck struct {
	Direction            string   `json:"direction"`
	MaxRegressionPercent *float64 `json:"maxRegressionPercent,omitempty"` // default 0
}

// ThresholdCheck states the condition that the target must satisfy.
type ThresholdCheck struct {
	Operator string   `json:"operator"`
	Value    *float64 `json:"value,omitempty"` // default 0
}

// Rollout is a rollout as the engine tells it.
type Rollout struct {
	ID                    string        `json:"id"` // rol_…
	ProjectID             string        `json:"projectId"`
	EndpointID            string        `json:"endpointId"`
	SourceDeploymentID    string        `json:"sourceDeploymentId"`
	TargetDeploymentID    string        `json:"targetDeploymentId"`
	Strategy              string        `json:"strategy"`
	State                 string        `json:"state"`
	CurrentStep           *int          `json:"currentStep,omitempty"`           // 0-based; unset while pending
	CurrentTrafficPercent *int          `json:"currentTrafficPercent,omitempty"` // applied on the target
	PauseInfo             *PauseInfo    `json:"pauseInfo,omitempty"`
	Status                RolloutStatus `json:"status"`
	ETag                  string        `json:"etag,omitempty"`
	CreatedAt             Time          `json:"createdAt"`
	StartedAt             *Time         `json:"startedAt,omitempty"`
	CompletedAt           *Time         `json:"completedAt,omitempty"`
	Sluice                *RolloutExtra `json:"sluice,omitempty"`
}

// PauseInfo says since when and why a rollout is paused.
type PauseInfo struct {
	PausedAt Time   `json:"pausedAt"`
	Reason   string `json:"reason,omitempty"`
}

// RolloutStatus carries the ladder as run and what holds it.
type RolloutStatus struct {
	Steps      []RolloutStep `json:"steps"`
	TotalSteps int           `json:"totalSteps"`
	Condition  *Condition    `json:"condition,omitempty"`
	Conditions []Condition   `json:"conditions,omitempty"`
	UpdatedAt  *Time         `json:"updatedAt,omitempty"`
}

// RolloutStep is one step; index and percent are always sent.
type RolloutStep struct {
	StepIndex            int         `json:"stepIndex"`
	TargetTrafficPercent int         `json:"targetTrafficPercent"`
	State                string      `json:"state"`
	StartedAt            *Time       `json:"startedAt,omitempty"`
	CompletedAt          *Time       `json:"completedAt,omitempty"`
	FailureReason        string      `json:"failureReason,omitempty"`
	Metrics              []MetricRow `json:"metrics,omitempty"`
}

// Condition is why a rollout is parked, or, in Conditions, what limits it.
type Condition struct {
	Category   string      `json:"category"`
	Message    string      `json:"message"`
	AtStep     int         `json:"atStep"`
	ObservedAt Time        `json:"observedAt"`
	Metrics    []MetricRow `json:"metrics,omitempty"`
	Type       string      `json:"type,omitempty"` // of one of Conditions
}

// CapacityLimited is the type of the condition that tells that a step stands at a part of
// its share, because the rest of its target cannot be placed.
const CapacityLimited = "CapacityLimited"

// MetricRow is one rule with what was measured and the verdict.
type MetricRow struct {
	Name                 string    `json:"name"`
	Stat                 string    `json:"stat"`
	Percentile           *int      `json:"percentile,omitempty"`
	Check                string    `json:"check"`
	Direction            string    `json:"direction,omitempty"`
	MaxRegressionPercent *float64  `json:"maxRegressionPercent,omitempty"`
	Operator             string    `json:"operator,omitempty"`
	Threshold            *float64  `json:"threshold,omitempty"`
	SourceValue          *float64  `json:"sourceValue,omitempty"`
	TargetValue          *float64  `json:"targetValue,omitempty"`
	Verdict              string    `json:"verdict,omitempty"`
	FailureReason        string    `json:"failureReason,omitempty"` // on a breach
	Sluice               *RowExtra `json:"sluice,omitempty"`
}

// RowExtra is what only Sluice's engine tells about a row.
type RowExtra struct {
	SourceSamples     int      `json:"sourceSamples"`
	TargetSamples     int      `json:"targetSamples"`
	SamplesNeeded     int      `json:"samplesNeeded"`
	RegressionPercent *float64 `json:"regressionPercent,omitempty"`
	Note              string   `json:"note,omitempty"` // for example "no source data"
}

// RolloutExtra is what only Sluice's engine tells about a rollout.
type RolloutExtra struct {
	Spec        *RolloutSpec `json:"spec,omitempty"` // as asked
	Digest      string       `json:"digest,omitempty"`
	Origin      string       `json:"origin,omitempty"`
	Phase       string       `json:"phase,omitempty"` // where inside the step
	PhaseSince  *Time        `json:"phaseSince,omitempty"`
	NextAt      *Time        `json:"nextAt,omitempty"`    // when the next thing is due
	NextEvent   string       `json:"nextEvent,omitempty"` // what that is
	Soak        *Duration    `json:"soak,omitempty"`      // in effect, per step
	Ladder      []LadderRung `json:"ladder,omitempty"`
	SeedPercent int          `json:"seedPercent"` // the target's share of the pair before the first step
	FinalSource int          `json:"finalSourceReplicas"`
	FinalTarget int          `json:"finalTargetReplicas"`
	Failures    int          `json:"targetFailures,omitempty"` // occasions on which ready target replicas failed since the current step's shift
	Attempts    int          `json:"attempts"`                 // gate evaluations of the current step
	RetryAt     *Time        `json:"retryAt,omitempty"`
	HeldSource  bool         `json:"heldSource,omitempty"`  // the source keeps its full size for now
	Trip        *BreakerTrip `json:"breakerTrip,omitempty"` // the circuit breaker took the target's traffic away
	Drift       *Drift       `json:"drift,omitempty"`       // a person broke the glass
	RetryUntil  *Time        `json:"retryUntil,omitempty"`
	ActualShare *float64     `json:"actualShare,omitempty"` // of the pair's answers, pinned requests left out, those of the target since the last shift, 0 to 1; absent below 20
}

// LadderRung is a planned step with its replica counts.
type LadderRung struct {
	TrafficPercent int `json:"trafficPercent"`
	TargetReplicas int `json:"targetReplicas"`
	SourceReplicas int `json:"sourceReplicas"` // after the drain
}

// Control is the body of pause, resume, promote and cancel.
type Control struct {
	Reason      string `json:"reason,omitempty"`
	Disposition string `json:"disposition,omitempty"` // cancel only: CANCEL_DISPOSITION_FREEZE
	ETag        string `json:"etag,omitempty"`
}

// Preview is what a create would make of a spec; for display.
type Preview struct {
	Spec                    RolloutSpec   `json:"spec"`
	SourceReplicas          int           `json:"sourceReplicas"`
	TargetReplicas          int           `json:"targetReplicas"`
	TargetMinReplicas       int           `json:"targetMinReplicas"`
	TargetMaxReplicas       int           `json:"targetMaxReplicas"`
	LandingMinReplicas      *int          `json:"landingMinReplicas,omitempty"`
	LandingMaxReplicas      *int          `json:"landingMaxReplicas,omitempty"`
	FrozenPair              bool          `json:"frozenPair,omitempty"`
	EstimatedSeedPercent    *int          `json:"estimatedSeedPercent,omitempty"`
	EstimatedEffectiveSteps []CanaryStep  `json:"estimatedEffectiveSteps,omitempty"`
	Warnings                []Warning     `json:"warnings"`
	Sluice                  *PreviewExtra `json:"sluice,omitempty"`
}

// PreviewExtra is what only Sluice's engine tells in a preview.
type PreviewExtra struct {
	Ladder       []LadderRung `json:"ladder"`
	Soak         Duration     `json:"soak"`
	AskedSoak    Duration     `json:"askedSoak"`
	PeakReplicas int          `json:"peakReplicas"`
	Feasible     bool         `json:"feasible"`
	Shortfall    string       `json:"shortfall,omitempty"` // what is missing when not feasible
	Timings      Timings      `json:"timings"`

	SourceRequestsPerSecond float64  `json:"sourceRequestsPerSecond"` // over the last minute
	TargetRequestsPerSecond float64  `json:"targetRequestsPerSecond"`
	ColdStart               Duration `json:"coldStart"`          // budget of one start of the target's config
	LeastTime               Duration `json:"leastTime"`          // the waits alone, no step retried
	TimeWithColdStarts      Duration `json:"timeWithColdStarts"` // with a whole budget for each step that starts replicas
}

// Warning is a preview's remark. Codes are an open vocabulary.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
