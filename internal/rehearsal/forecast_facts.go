package rehearsal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/wire"
)

// Facts are what a rehearsal must know and HCL does not say: docs/rehearse.md has the
// file. Nil and empty mean not told.
type Facts struct {
	From        string                     `yaml:"-"`            // where they are from, for people
	RequestRate *float64                   `yaml:"request_rate"` // on the pair, a second
	Deployments map[string]DeploymentFacts `yaml:"deployments"`  // by address, declared name or id
	Hardware    map[string]PoolFacts       `yaml:"hardware"`
	Timings     TimingFacts                `yaml:"timings"`

	EndpointRate *float64 `yaml:"-"` // on the whole endpoint, as an engine sees it
	Holder       string   `yaml:"-"` // rollout that holds the endpoint
}

// DeploymentFacts are what is known of one deployment.
type DeploymentFacts struct {
	Replicas  *int           `yaml:"replicas"` // ready now
	Min       *int           `yaml:"min_replicas"`
	Max       *int           `yaml:"max_replicas"`
	Share     *int           `yaml:"share"`      // percent of the pair's traffic now
	ColdStart *Curve         `yaml:"cold_start"` // of one replica
	Budget    *time.Duration `yaml:"cold_start_budget"`
	Drain     *time.Duration `yaml:"drain"`
	Latency   *Curve         `yaml:"latency"`
	ErrorRate *float64       `yaml:"error_rate"`
	Hardware  string         `yaml:"hardware"`

	EndpointShare *float64 `yaml:"-"` // of the whole endpoint, 0 to 1, as an engine sees it
}

// PoolFacts are what is known of a hardware pool: one of Capacity and Free.
type PoolFacts struct {
	Capacity *int `yaml:"capacity"` // replicas that fit in all, beside what others use
	Free     *int `yaml:"free"`     // further replicas that fit now
	GPUs     *int `yaml:"gpus"`     // of one replica
}

// TimingFacts override the published waits, by the names of the engine's configuration.
type TimingFacts struct {
	Propagation     *time.Duration `yaml:"propagation"`
	IngestionLag    *time.Duration `yaml:"ingestion_lag"`
	DefaultWindow   *time.Duration `yaml:"default_window"`
	MinimumWindow   *time.Duration `yaml:"minimum_window"`
	DefaultInterval *time.Duration `yaml:"default_interval"`
	Stabilization   *time.Duration `yaml:"stabilization"`
	Confirmation    *time.Duration `yaml:"confirmation"`
	PeekEvery       *time.Duration `yaml:"peek_every"`
	GateSettle      *time.Duration `yaml:"gate_settle"`
	RetryInterval   *time.Duration `yaml:"retry_interval"`
	RetryFor        *time.Duration `yaml:"retry_for"`
	ReadyDeadline   *time.Duration `yaml:"ready_deadline"`
	DrainDeadline   *time.Duration `yaml:"drain_deadline"`
}

// MaxFacts bounds a facts file, in bytes.
const MaxFacts = 1 << 20

// ParseFacts reads a facts file. A word that it does not know is an error.
func ParseFacts(text []byte) (Facts, error) {
	var f Facts
	if len(text) > MaxFacts {
		return f, fmt.Errorf("a facts file of %d bytes is larger than %d", len(text), MaxFacts)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return Facts{}, errors.New(plainYAML(err))
	}
	if err := d.Decode(&Facts{}); !errors.Is(err, io.EOF) {
		return Facts{}, errors.New("a facts file holds one document")
	}
	return f, f.check()
}

// goType is what the parser says of a value of another kind than the field's.
var goType = regexp.MustCompile("cannot unmarshal !!([a-z]+)( `[^`]*`)? into [^ ;\n]+")

// plainYAML is a parser's error without the names of Go.
func plainYAML(err error) string {
	text := strings.NewReplacer("yaml: ", "", "unmarshal errors:\n  ", "").Replace(err.Error())
	for _, kind := range []string{"Facts", "DeploymentFacts", "PoolFacts", "TimingFacts"} {
		text = strings.ReplaceAll(text, " not found in type rehearsal."+kind, " is not known here")
	}
	return goType.ReplaceAllString(strings.ReplaceAll(text, "\n  ", "; "), "a value of kind $1$2 cannot stand here")
}

// maxCount bounds replicas and GPUs of a rehearsal.
const maxCount = 1000

// check tells what can never be right, in a fixed order.
func (f Facts) check() error {
	if r := f.RequestRate; r != nil && !(*r >= 0 && *r <= 1e6) {
		return fmt.Errorf("request_rate: %v is not a number of requests a second from 0 to 1000000", *r)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Deployments)) {
		if err := f.Deployments[name].check(); err != nil {
			return fmt.Errorf("deployments.%s.%w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Hardware)) {
		p := f.Hardware[name]
		if p.Capacity != nil && p.Free != nil {
			return fmt.Errorf("hardware.%s: give capacity or free, not both", name)
		}
		for key, n := range map[string]*int{"capacity": p.Capacity, "free": p.Free, "gpus": p.GPUs} {
			if err := counted(key, n); err != nil {
				return fmt.Errorf("hardware.%s.%w", name, err)
			}
		}
	}
	if t, ok := f.Timings.wrong(); ok {
		return fmt.Errorf("timings: %s is not a wait from 0 to 24h", t)
	}
	return nil
}

func (d DeploymentFacts) check() error {
	for _, c := range []struct {
		key string
		n   *int
	}{{"replicas", d.Replicas}, {"min_replicas", d.Min}, {"max_replicas", d.Max}} {
		if err := counted(c.key, c.n); err != nil {
			return err
		}
	}
	if s := d.Share; s != nil && (*s < 0 || *s > 100) {
		return fmt.Errorf("share: %d is not a percent from 0 to 100", *s)
	}
	if e := d.ErrorRate; e != nil && !(*e >= 0 && *e <= 1) {
		return fmt.Errorf("error_rate: %v is not a share from 0 to 1", *e)
	}
	for key, wait := range map[string]*time.Duration{"cold_start_budget": d.Budget, "drain": d.Drain} {
		if wait != nil && (*wait < 0 || *wait > 24*time.Hour) {
			return fmt.Errorf("%s: %s is not a wait from 0 to 24h", key, *wait)
		}
	}
	return nil
}

func counted(key string, n *int) error {
	if n != nil && (*n < 0 || *n > maxCount) {
		return fmt.Errorf("%s: %d is not a count from 0 to %d", key, *n, maxCount)
	}
	return nil
}

// pairs are the overrides beside what they override.
func (t *TimingFacts) pairs(to *rollout.Timings) []struct{ from, to *time.Duration } {
	return []struct{ from, to *time.Duration }{
		{t.Propagation, &to.Propagation}, {t.IngestionLag, &to.IngestionLag}, {t.DefaultWindow, &to.DefaultWindow},
		{t.MinimumWindow, &to.MinimumWindow}, {t.DefaultInterval, &to.DefaultInterval}, {t.Stabilization, &to.Stabilization},
		{t.Confirmation, &to.Confirmation}, {t.PeekEvery, &to.PeekEvery}, {t.GateSettle, &to.GateSettle},
		{t.RetryInterval, &to.RetryInterval}, {t.RetryFor, &to.RetryFor}, {t.ReadyDeadline, &to.ReadyDeadline}, {t.DrainDeadline, &to.DrainDeadline},
	}
}

func (t TimingFacts) wrong() (time.Duration, bool) {
	for _, p := range t.pairs(&rollout.Timings{}) {
		if p.from != nil && (*p.from < 0 || *p.from > 24*time.Hour) {
			return *p.from, true
		}
	}
	return 0, false
}

// InEffect are the published waits with what the facts override.
func (f Facts) InEffect() rollout.Timings {
	t := rollout.DefaultTimings()
	for _, p := range f.Timings.pairs(&t) {
		if p.from != nil {
			*p.to = *p.from
		}
	}
	return t
}

// TimingsOf are the waits that an engine tells as facts; what it does not tell keeps the
// published number.
func TimingsOf(in api.Timings) TimingFacts {
	t := wire.TimingsFromAPI(in)
	var out TimingFacts
	fields := out.fields()
	for i, p := range out.pairs(&t) {
		*fields[i] = p.to
	}
	return out
}

// Over puts facts over others: what is told here wins, field by field. Deployments are
// one only under one name.
func (f Facts) Over(base Facts) Facts {
	out := base
	out.From = strings.TrimPrefix(f.From+", then "+base.From, ", then ")
	out.RequestRate, out.EndpointRate = either(f.RequestRate, base.RequestRate), either(f.EndpointRate, base.EndpointRate)
	out.Deployments = maps.Clone(base.Deployments)
	for name, d := range f.Deployments {
		if out.Deployments == nil {
			out.Deployments = map[string]DeploymentFacts{}
		}
		out.Deployments[name] = d.over(out.Deployments[name])
	}
	out.Hardware = maps.Clone(base.Hardware)
	for name, p := range f.Hardware {
		if out.Hardware == nil {
			out.Hardware = map[string]PoolFacts{}
		}
		under := out.Hardware[name]
		if p.Capacity != nil || p.Free != nil {
			under.Capacity, under.Free = p.Capacity, p.Free
		}
		under.GPUs = either(p.GPUs, under.GPUs)
		out.Hardware[name] = under
	}
	var mine, theirs rollout.Timings
	told, under := f.Timings.pairs(&mine), base.Timings.pairs(&theirs)
	targets := out.Timings.fields()
	for i := range told {
		*targets[i] = either(told[i].from, under[i].from)
	}
	return out
}

// fields are the overrides in the order of pairs.
func (t *TimingFacts) fields() []**time.Duration {
	return []**time.Duration{
		&t.Propagation, &t.IngestionLag, &t.DefaultWindow, &t.MinimumWindow, &t.DefaultInterval, &t.Stabilization,
		&t.Confirmation, &t.PeekEvery, &t.GateSettle, &t.RetryInterval, &t.RetryFor, &t.ReadyDeadline, &t.DrainDeadline,
	}
}

func (d DeploymentFacts) over(base DeploymentFacts) DeploymentFacts {
	hardware := d.Hardware
	if hardware == "" {
		hardware = base.Hardware
	}
	return DeploymentFacts{
		Replicas: either(d.Replicas, base.Replicas), Min: either(d.Min, base.Min), Max: either(d.Max, base.Max), Share: either(d.Share, base.Share),
		ColdStart: either(d.ColdStart, base.ColdStart), Budget: either(d.Budget, base.Budget), Drain: either(d.Drain, base.Drain),
		Latency: either(d.Latency, base.Latency), ErrorRate: either(d.ErrorRate, base.ErrorRate), Hardware: hardware,
		EndpointShare: either(d.EndpointShare, base.EndpointShare),
	}
}

func either[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
