package rollout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one thing wrong with a spec: the field, what is wrong, and how to
// mend it. Field is a path such as "canary.steps[1].traffic" in the words of the
// wire; doors translate it to their own.
type Problem struct {
	Field   string
	Message string
	Hint    string
}

func (p Problem) String() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "; " + p.Hint
}

// Limits of a spec: a typing error, or a hostile caller, must not cost more than its
// refusal.
const (
	MaxReplicas = 10_000 // of one deployment
	MaxBatches  = 1_000  // of a rolling rollout, one a target replica
	MaxRules    = 20
	MaxSteps    = 100   // of a ladder: it climbs by whole percents
	MaxSigner   = 200   // characters of who signed a circuit breaker
	MaxDigest   = 200   // characters of a door's digest
	MaxOrigin   = 1_000 // characters of who asked
)

// problems gathers Problems under a common prefix.
type problems []Problem

func (ps *problems) add(field, message, hint string) {
	*ps = append(*ps, Problem{Field: field, Message: message, Hint: hint})
}

// Validate tells everything that can never be right about a spec, in the order of
// its fields. It looks at nothing live. The rules are those of the platform's
// create call.
func (s Spec) Validate(t Timings) []Problem {
	var ps problems
	if s.Source != "" && s.Source == s.Target {
		ps.add("targetDeploymentId", "source and target are the same deployment "+s.Source, "name two different deployments of one endpoint")
	}
	if s.Target == "" {
		ps.add("targetDeploymentId", "no target deployment", "name the deployment that traffic moves to")
	}
	switch s.Strategy {
	case Canary:
		validateLadder(&ps, s.Steps)
		if s.StepInterval < 0 {
			ps.add("canary.stepInterval", fmt.Sprintf("step interval %v is not positive", s.StepInterval), "give a wait such as 600s, or leave it out")
		}
	case BlueGreen, Rolling:
		if len(s.Rules) > 0 {
			ps.add("metrics", "metric gates need the staged steps of a canary", "use canary, or drop the metrics: health gates run with every strategy")
		}
	default:
		ps.add("strategy", "no strategy", "give exactly one of canary, blueGreen and rolling")
	}
	if s.Breaker != nil {
		validateBreaker(&ps, *s.Breaker, t)
	}
	for i, r := range s.Rules {
		validateRule(&ps, fmt.Sprintf("metrics[%d]", i), r, t)
	}
	validateNotes(&ps, s)
	if s.FinalSource < 0 {
		ps.add("finalSourceReplicas", fmt.Sprintf("%d replicas cannot be left on the source", s.FinalSource), "give 0 to drain and stop it, or more to keep some")
	}
	if n := len(s.Rules); n > MaxRules {
		ps.add("metrics", fmt.Sprintf("%d metric rules are more than the limit of %d", n, MaxRules), "keep those that would stop you")
	}
	if s.FinalSource > MaxReplicas {
		ps.add("finalSourceReplicas", fmt.Sprintf("%d replicas are above the limit of %d", s.FinalSource, MaxReplicas), "is there a digit too many?")
	}
	if s.FinalTarget != nil && *s.FinalTarget > MaxReplicas {
		ps.add("finalTargetReplicas", fmt.Sprintf("%d replicas are above the limit of %d", *s.FinalTarget, MaxReplicas), "is there a digit too many?")
	}
	if s.FinalTarget != nil && *s.FinalTarget < 1 {
		ps.add("finalTargetReplicas", fmt.Sprintf("a target with %d replicas cannot serve", *s.FinalTarget), "give at least 1, or leave it out for the source's count")
	}
	return ps
}

// validateNotes bounds what is kept with every version of the record and only shown.
func validateNotes(ps *problems, s Spec) {
	if n := utf8.RuneCountInString(s.Digest); n > MaxDigest {
		ps.add("sluice.digest", fmt.Sprintf("a digest of %d characters is above the limit of %d", n, MaxDigest), "send a hash, such as sha256: and 64 hex digits")
	}
	if n := utf8.RuneCountInString(s.Origin); n > MaxOrigin {
		ps.add("sluice.origin", fmt.Sprintf("an origin of %d characters is above the limit of %d", n, MaxOrigin), "name a commit, a pull request or a workspace")
	}
}

func validateLadder(ps *problems, steps []StepSpec) {
	if n := len(steps); n > MaxSteps {
		ps.add("canary.steps", fmt.Sprintf("%d steps are more than the limit of %d", n, MaxSteps), "a ladder climbs strictly by whole percents, for example 10, 50, 100")
		return
	}
	last := 0
	for i, st := range steps {
		field := fmt.Sprintf("canary.steps[%d].traffic", i)
		switch {
		case st.Percent < 1 || st.Percent > 100:
			ps.add(field, fmt.Sprintf("step %d asks for %d %% of traffic", i+1, st.Percent), "a step is a whole number from 1 to 100")
		case st.Percent <= last:
			ps.add(field, fmt.Sprintf("step %d asks for %d %% after %d %%", i+1, st.Percent, last), "a ladder climbs strictly, for example 10, 50, 100")
		}
		last = max(last, st.Percent)
		if st.Replicas != nil && *st.Replicas > MaxReplicas {
			ps.add(fmt.Sprintf("canary.steps[%d].replicas", i), fmt.Sprintf("step %d asks for %d target replicas, above the limit of %d", i+1, *st.Replicas, MaxReplicas), "is there a digit too many?")
		}
		if st.Replicas != nil && *st.Replicas < 1 {
			ps.add(fmt.Sprintf("canary.steps[%d].replicas", i), fmt.Sprintf("step %d asks for %d target replicas", i+1, *st.Replicas), "give at least 1, or leave it out for the computed count")
		}
	}
	if n := len(steps); n > 0 && steps[n-1].Percent != 100 {
		ps.add(fmt.Sprintf("canary.steps[%d].traffic", n-1), fmt.Sprintf("the ladder ends at %d %%", steps[n-1].Percent), "end it at 100: a rollout ends with all of the pair's traffic on the target")
	}
}

func validateRule(ps *problems, at string, r Rule, t Timings) {
	if !known(r.Metric) {
		ps.add(at+".name", fmt.Sprintf("unknown metric %q; supported: %s", r.Metric, catalogue()), nearest(string(r.Metric)))
		return
	}
	validateStat(ps, at, r)
	if r.Window != 0 && r.Window < t.MinimumWindow {
		ps.add(at+".window", fmt.Sprintf("window %v is below the minimum of %v", r.Window, t.MinimumWindow), "a shorter one would lie inside the ingestion lag")
	}
	if (r.Regression == nil) == (r.Threshold == nil) {
		ps.add(at, "a rule needs exactly one of regressionCheck and thresholdCheck", "give both kinds as two rules if you want both")
		return
	}
	if r.Regression != nil {
		validateRegression(ps, at+".regressionCheck", *r.Regression)
	} else {
		validateThreshold(ps, at+".thresholdCheck", r.Metric, *r.Threshold)
	}
}

func validateStat(ps *problems, at string, r Rule) {
	switch {
	case r.Metric == RouterLatency && r.Stat == "":
		ps.add(at+".stat", "router_latency needs a stat", "give PERCENTILE with percentile 95, or AVG; the median is often a fast reject")
	case r.Stat != "" && r.Stat != StatAvg && r.Stat != StatPercentile:
		ps.add(at+".stat", fmt.Sprintf("stat %q is not supported", r.Stat), "use AVG, or PERCENTILE with router_latency")
	case r.Stat == StatPercentile && r.Metric != RouterLatency:
		ps.add(at+".stat", fmt.Sprintf("%s has no percentiles", r.Metric), "leave the stat out: it is averaged over the window")
	case r.Stat == StatPercentile && (r.Percentile < 1 || r.Percentile > 99):
		ps.add(at+".percentile", fmt.Sprintf("percentile %d is not between 1 and 99", r.Percentile), "give a whole number such as 95")
	case r.Stat != StatPercentile && r.Percentile != 0:
		ps.add(at+".percentile", "a percentile goes with stat PERCENTILE only", "drop it or set the stat")
	}
}

func validateRegression(ps *problems, at string, c Regression) {
	if c.Direction != HigherIsWorse && c.Direction != LowerIsWorse {
		ps.add(at+".direction", fmt.Sprintf("direction %q is unknown", c.Direction), "use HIGHER_IS_WORSE or LOWER_IS_WORSE")
	}
	switch {
	case math.IsNaN(c.MaxPercent) || math.IsInf(c.MaxPercent, 0) || c.MaxPercent < 0:
		ps.add(at+".maxRegressionPercent", "a regression budget is a finite number of percent, at least 0", "for example 10")
	case c.Direction == LowerIsWorse && c.MaxPercent >= 100:
		ps.add(at+".maxRegressionPercent", fmt.Sprintf("a fall of more than %v %% cannot happen, so the rule could never fail", c.MaxPercent), "give less than 100")
	}
}

func validateThreshold(ps *problems, at string, m Metric, c Threshold) {
	upper := math.Inf(1)
	if m == RouterErrorRate {
		upper = 1
	}
	v := c.Value
	if math.IsNaN(v) || math.IsInf(v, 0) {
		ps.add(at+".value", "a threshold is a finite number", "for example 0.01")
		return
	}
	var never, always bool // whatever is measured
	switch c.Operator {
	case LT:
		never, always = v <= 0, v > upper
	case LTE:
		never, always = v < 0, v >= upper
	case GT:
		never, always = v >= upper, v < 0
	case GTE:
		never, always = v > upper, v <= 0
	default:
		ps.add(at+".operator", fmt.Sprintf("operator %q is unknown", c.Operator), "use LT, LTE, GT or GTE: the condition that the target must satisfy")
		return
	}
	unit := "from 0 up"
	if m == RouterErrorRate {
		unit = "from 0 to 1"
	}
	if never {
		ps.add(at+".value", fmt.Sprintf("nothing can satisfy %s %s %s", m, c.Operator, number(v)), "the metric runs "+unit)
	}
	if always {
		ps.add(at+".value", fmt.Sprintf("everything satisfies %s %s %s, so the rule could never fail", m, c.Operator, number(v)), "the metric runs "+unit)
	}
}

func known(m Metric) bool {
	for _, k := range Metrics() {
		if k == m {
			return true
		}
	}
	return false
}

func catalogue() string {
	names := make([]string, 0, 3)
	for _, m := range Metrics() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

// nearest suggests the catalogue's name that a wrong one is a part of, or else the
// one that differs least from it.
func nearest(name string) string {
	best, at := "", len(name)+1
	for _, m := range Metrics() {
		if len(name) >= 4 && strings.Contains(string(m), strings.ToLower(name)) {
			return fmt.Sprintf("did you mean %q?", m)
		}
		if d := editDistance(name, string(m)); d < at {
			best, at = string(m), d
		}
	}
	if best == "" || at > len(best)/2+1 {
		return "the catalogue is closed"
	}
	return fmt.Sprintf("did you mean %q?", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j-1], row[j])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
