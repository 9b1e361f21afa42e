package api

// Prefixes of the enums: the core's short names travel with them.
const (
	PrefixRolloutState = "ROLLOUT_STATE_"
	PrefixStepState    = "ROLLOUT_STEP_STATE_"
	PrefixStrategy     = "ROLLOUT_STRATEGY_TYPE_"
	PrefixCategory     = "ROLLOUT_FAILURE_CATEGORY_"
	PrefixStat         = "METRIC_STAT_TYPE_"
	PrefixDirection    = "REGRESSION_DIRECTION_"
	PrefixOperator     = "THRESHOLD_OPERATOR_"
	PrefixCheck        = "METRIC_CHECK_TYPE_"
	PrefixVerdict      = "METRIC_VERDICT_"
	PrefixDisposition  = "CANCEL_DISPOSITION_"
	PrefixLevel        = "LEVEL_"
	PrefixSourceKind   = "SOURCE_KIND_"

	FilterActive   = "ROLLOUT_FILTER_ACTIVE"
	FilterTerminal = "ROLLOUT_FILTER_TERMINAL"
)
