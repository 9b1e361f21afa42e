package rehearsal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

func clauses(text string) []string {
	parts := strings.Split(text, ";")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// parseSpec reads "canary 10 50x3 100; interval 600s; final target 2; final source 1".
func parseSpec(text string) (rollout.Spec, error) {
	var s rollout.Spec
	for i, part := range clauses(text) {
		words := strings.Fields(part)
		var err error
		switch {
		case i == 0:
			err = parseStrategy(&s, words)
		case len(words) == 2 && words[0] == "interval":
			s.StepInterval, err = time.ParseDuration(words[1])
		case part == "hold source":
			s.HoldSource = true
		case len(words) == 3 && strings.HasPrefix(part, "final target "):
			var n int
			n, err = strconv.Atoi(words[2])
			s.FinalTarget = &n
		case len(words) == 3 && strings.HasPrefix(part, "final source "):
			s.FinalSource, err = strconv.Atoi(words[2])
		default:
			err = fmt.Errorf("%q is not known of a rollout", part)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func parseStrategy(s *rollout.Spec, words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("a rollout wants a strategy")
	}
	kinds := map[string]rollout.Strategy{"canary": rollout.Canary, "blue-green": rollout.BlueGreen, "rolling": rollout.Rolling}
	s.Strategy = kinds[words[0]]
	if s.Strategy == "" {
		return fmt.Errorf("%q is not a strategy", words[0])
	}
	for _, word := range words[1:] {
		percent, count, override := strings.Cut(word, "x")
		p, err := strconv.Atoi(percent)
		if err != nil {
			return err
		}
		st := rollout.StepSpec{Percent: p}
		if override {
			n, err := strconv.Atoi(count)
			if err != nil {
				return err
			}
			st.Replicas = &n
		}
		s.Steps = append(s.Steps, st)
	}
	return nil
}

// parseRule reads "router_latency p95 regression 25 higher; window 300s" or
// "router_error_rate threshold LT 0.01".
func parseRule(text string) (rollout.Rule, error) {
	parts := clauses(text)
	words := strings.Fields(parts[0])
	if len(words) < 3 {
		return rollout.Rule{}, fmt.Errorf("a gate wants a metric and regression or threshold")
	}
	r := rollout.Rule{Metric: rollout.Metric(words[0])}
	check := words[len(words)-3]
	for _, w := range words[1 : len(words)-3] {
		if err := parseStat(&r, w); err != nil {
			return r, err
		}
	}
	if err := parseCheck(&r, check, words[len(words)-2], words[len(words)-1]); err != nil {
		return r, err
	}
	for _, part := range parts[1:] {
		window, ok := strings.CutPrefix(part, "window ")
		if !ok {
			return r, fmt.Errorf("%q is not known of a gate", part)
		}
		var err error
		if r.Window, err = time.ParseDuration(window); err != nil {
			return r, err
		}
	}
	return r, nil
}

// withRule adds a rule to a circuit breaker that ana signed.
func withRule(b *rollout.Breaker, r rollout.Rule) *rollout.Breaker {
	if b == nil {
		b = &rollout.Breaker{SignedBy: "ana"}
	}
	b.Rules = append(b.Rules, r)
	return b
}

func parseStat(r *rollout.Rule, word string) error {
	if word == "avg" {
		r.Stat = rollout.StatAvg
		return nil
	}
	percentile, ok := strings.CutPrefix(word, "p")
	n, err := strconv.Atoi(percentile)
	if !ok || err != nil {
		return fmt.Errorf("%q is not known of a gate", word)
	}
	r.Stat, r.Percentile = rollout.StatPercentile, n
	return nil
}

func parseCheck(r *rollout.Rule, kind, first, second string) error {
	var err error
	switch kind {
	case "threshold":
		r.Threshold = &rollout.Threshold{Operator: rollout.Operator(first)}
		r.Threshold.Value, err = strconv.ParseFloat(second, 64)
	case "regression":
		r.Regression = &rollout.Regression{Direction: map[string]rollout.Direction{"higher": rollout.HigherIsWorse, "lower": rollout.LowerIsWorse}[second]}
		r.Regression.MaxPercent, err = strconv.ParseFloat(first, 64)
	default:
		err = fmt.Errorf("%q is not known of a gate", kind)
	}
	return err
}

func parseBounds(text string) (rollout.Bounds, error) {
	low, high, ok := strings.Cut(text, "..")
	lo, err1 := strconv.Atoi(low)
	hi, err2 := strconv.Atoi(high)
	if !ok || err1 != nil || err2 != nil {
		return rollout.Bounds{}, fmt.Errorf("%q is not bounds such as 1..4", text)
	}
	return rollout.Bounds{Min: lo, Max: hi}, nil
}
