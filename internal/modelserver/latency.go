package modelserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Latency is a distribution of answer times. The zero value is no latency at
// all. It is a flag value (Set, String, Type) and a text value for files.
type Latency struct {
	shape shape
	a     time.Duration // constant; mean, median, or lower end
	b     time.Duration // standard deviation, or upper end
	sigma float64       // of the logarithm
}

// shape names the family of a distribution.
type shape string

const (
	shapeConstant  shape = ""
	shapeNormal    shape = "normal"
	shapeLogNormal shape = "lognormal"
	shapeUniform   shape = "uniform"
)

// Constant is the latency that is always d.
func Constant(d time.Duration) Latency { return Latency{a: d} }

// ParseLatency reads "120ms", "normal(120ms,20ms)" (mean, standard deviation;
// cut off at 0), "lognormal(120ms,0.3)" (median, sigma of the logarithm) or
// "uniform(50ms,200ms)". Empty text is no latency.
func ParseLatency(s string) (Latency, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return Latency{}, nil
	}
	name, rest, isCall := strings.Cut(s, "(")
	if !isCall {
		d, err := parseDuration(s)
		return Latency{a: d}, err
	}
	inner, ok := strings.CutSuffix(rest, ")")
	first, second, two := strings.Cut(inner, ",")
	if !ok || !two {
		return Latency{}, fmt.Errorf("latency %q: want name(value,value)", s)
	}
	l := Latency{shape: shape(strings.ToLower(strings.TrimSpace(name)))}
	var err error
	if l.a, err = parseDuration(first); err != nil {
		return Latency{}, err
	}
	return l.withSecond(strings.TrimSpace(second))
}

// withSecond reads the second argument, whose meaning the shape decides.
func (l Latency) withSecond(arg string) (Latency, error) {
	var err error
	switch l.shape {
	case shapeLogNormal:
		l.sigma, err = strconv.ParseFloat(arg, 64)
		if err != nil || !(l.sigma >= 0 && l.sigma <= 10) {
			return Latency{}, fmt.Errorf("lognormal latency: sigma %q is not a number from 0 to 10", arg)
		}
	case shapeNormal, shapeUniform:
		if l.b, err = parseDuration(arg); err != nil {
			return Latency{}, err
		}
		if l.shape == shapeUniform && l.b < l.a {
			return Latency{}, fmt.Errorf("uniform latency: %s is below %s", l.b, l.a)
		}
	default:
		return Latency{}, fmt.Errorf("latency %q: want normal, lognormal or uniform", string(l.shape))
	}
	return l, nil
}

// parseDuration reads a duration that is not negative.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("latency: %w", err)
	}
	if d < 0 {
		return 0, fmt.Errorf("latency: %s is negative", d)
	}
	return d, nil
}

// Sample draws one latency, never a negative one.
func (l Latency) Sample(r *rand.Rand) time.Duration {
	switch l.shape {
	case shapeNormal:
		return max(0, l.a+time.Duration(r.NormFloat64()*float64(l.b)))
	case shapeLogNormal:
		d := float64(l.a) * math.Exp(l.sigma*r.NormFloat64())
		return time.Duration(min(d, float64(math.MaxInt64/2)))
	case shapeUniform:
		return l.a + time.Duration(r.Float64()*float64(l.b-l.a))
	default:
		return l.a
	}
}

// String is the form that ParseLatency reads.
func (l Latency) String() string {
	switch l.shape {
	case shapeLogNormal:
		return fmt.Sprintf("lognormal(%s,%s)", l.a, strconv.FormatFloat(l.sigma, 'g', -1, 64))
	case shapeNormal, shapeUniform:
		return fmt.Sprintf("%s(%s,%s)", l.shape, l.a, l.b)
	default:
		return l.a.String()
	}
}

// Set reads a flag's text.
func (l *Latency) Set(s string) (err error) {
	*l, err = ParseLatency(s)
	return err
}

// Type is the word that a flag's help shows.
func (l *Latency) Type() string { return "latency" }

// MarshalText is String.
func (l Latency) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText is Set.
func (l *Latency) UnmarshalText(b []byte) error { return l.Set(string(b)) }
