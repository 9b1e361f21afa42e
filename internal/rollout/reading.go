package rollout

import "time"

// Metric names one of the three router-side metrics. The catalogue is closed.
type Metric string

// The catalogue of gate metrics. For all three, higher is worse.
const (
	RouterErrorRate  Metric = "router_error_rate" // router 5xx ÷ all inference responses, 0 to 1
	RouterLatency    Metric = "router_latency"    // duration at the router, milliseconds
	InflightRequests Metric = "inflight_requests" // unfinished requests per ready replica, averaged over the window
)

// Metrics lists the catalogue in the order in which messages name it.
func Metrics() []Metric { return []Metric{InflightRequests, RouterErrorRate, RouterLatency} }

// Stat is how a window is made one number.
type Stat string

// The two statistics. Percentile goes with router_latency only.
const (
	StatAvg        Stat = "AVG"
	StatPercentile Stat = "PERCENTILE"
)

// Query asks the meter for one number of one deployment over a closed window.
// Only requests that were routed under MinGeneration or a later route count, so
// that a step never judges the traffic of the split before it.
type Query struct {
	Deployment    string
	Metric        Metric
	Stat          Stat
	Percentile    int // 1 to 99 with StatPercentile
	From, To      time.Time
	MinGeneration uint64
}

// Reading is the meter's answer. NaN or infinite values count as no reading.
type Reading struct {
	Value    float64
	Samples  int     // requests that ended in the window
	Touched  bool    // some request was under way in the window, whether or not it ended
	Complete bool    // the meter watched the whole window; false after a gap
	ErrorPct float64 // bound of the sketch's relative error, percent; 0 for exact
}
