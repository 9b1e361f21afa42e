package rehearsal

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
)

// Curve is a distribution of times, in the words of sluice modelserver's --latency:
// "120ms", "normal(120ms,20ms)", "lognormal(120ms,0.3)", "uniform(50ms,200ms)"; or by
// two of its percentiles, "p50=448ms p95=734ms", which makes a lognormal one.
type Curve struct{ modelserver.Latency }

// ParseCurve reads a curve.
func ParseCurve(text string) (Curve, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "p") {
		return fromPercentiles(text)
	}
	l, err := modelserver.ParseLatency(text)
	return Curve{l}, err
}

// normalQuantiles are of the standard normal distribution.
var normalQuantiles = map[string]float64{"p90": 1.2815515655446004, "p95": 1.6448536269514722, "p99": 2.3263478740408408}

// fromPercentiles makes the lognormal curve through its median and one percentile above.
func fromPercentiles(text string) (Curve, error) {
	wrong := fmt.Errorf("latency %q: want the median and one of p90, p95 and p99 above it, as in \"p50=448ms p95=734ms\"", text)
	parts := strings.Fields(strings.ReplaceAll(text, ",", " "))
	if len(parts) != 2 {
		return Curve{}, wrong
	}
	first, low, ok1 := strings.Cut(parts[0], "=")
	second, high, ok2 := strings.Cut(parts[1], "=")
	z := normalQuantiles[second]
	median, err1 := time.ParseDuration(low)
	upper, err2 := time.ParseDuration(high)
	if !ok1 || !ok2 || first != "p50" || z == 0 || err1 != nil || err2 != nil || median <= 0 || upper < median {
		return Curve{}, wrong
	}
	sigma := math.Log(float64(upper)/float64(median)) / z
	return ParseCurve(fmt.Sprintf("lognormal(%s,%.6f)", median, sigma))
}

// UnmarshalText is ParseCurve.
func (c *Curve) UnmarshalText(b []byte) (err error) {
	*c, err = ParseCurve(string(b))
	return err
}
