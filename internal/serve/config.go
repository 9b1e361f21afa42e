package serve

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engine"
	"github.com/sluice-dev/terraform-provider-sluice/internal/fleet"
	"github.com/sluice-dev/terraform-provider-sluice/internal/modelserver"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// File is the engine's configuration file, YAML. Everything has a default but what
// may run: without a config no deployment can be made.
type File struct {
	Project  ProjectFile    `yaml:"project"`
	Timings  TimingsFile    `yaml:"timings"`
	Fleet    FleetFile      `yaml:"fleet"`
	Hardware []HardwareFile `yaml:"hardware"`
	Configs  []ConfigFile   `yaml:"configs"`
	Gateway  GatewayFile    `yaml:"gateway"`
	Meter    MeterFile      `yaml:"meter"`

	Entitlement EntitlementFile `yaml:"entitlement"`
}

// ProjectFile names the project of a new data folder; an existing one keeps its own.
type ProjectFile struct {
	ID           string `yaml:"id"`
	Name         string `yaml:"name"`
	Slug         string `yaml:"slug"`
	Organization string `yaml:"organization"`
}

// TimingsFile overrides the engine's waits. A zero or absent one keeps its default.
type TimingsFile struct {
	Propagation     Span `yaml:"propagation"`
	IngestionLag    Span `yaml:"ingestion_lag"`
	DefaultWindow   Span `yaml:"default_window"`
	MinimumWindow   Span `yaml:"minimum_window"`
	DefaultInterval Span `yaml:"default_interval"`
	Stabilization   Span `yaml:"stabilization"`
	Confirmation    Span `yaml:"confirmation"`
	PeekEvery       Span `yaml:"peek_every"`
	GateSettle      Span `yaml:"gate_settle"`
	RetryInterval   Span `yaml:"retry_interval"`
	RetryFor        Span `yaml:"retry_for"`
	ReadyDeadline   Span `yaml:"ready_deadline"`
	DrainDeadline   Span `yaml:"drain_deadline"`
}

// FleetFile chooses who runs replicas.
type FleetFile struct {
	Driver  string `yaml:"driver"`  // process (default) or simulated
	Servers string `yaml:"servers"` // of the driver simulated: replica (default), a model server for each, or config, one for all of a config and model
}

// HardwareFile is one instance type of the inventory.
type HardwareFile struct {
	ID                string `yaml:"id"`
	Name              string `yaml:"name"`
	Description       string `yaml:"description"`
	GPUType           string `yaml:"gpu_type"`
	GPUCount          int    `yaml:"gpu_count"` // of one replica
	GPUMemoryGiB      int    `yaml:"gpu_memory_gib"`
	PriceCentsPerHour int    `yaml:"price_cents_per_hour"` // of one replica
	Region            string `yaml:"region"`
	Capacity          *int   `yaml:"capacity"` // replicas that fit; absent for no limit but the GPUs'
	GPUs              []int  `yaml:"gpus"`     // indices on this host
}

// ConfigFile declares how models may be served. A deployment names it by its id.
type ConfigFile struct {
	ID           string            `yaml:"id"`
	Name         string            `yaml:"name"`
	Models       []string          `yaml:"models"`
	Hardware     string            `yaml:"hardware"`
	Command      []string          `yaml:"command"` // {port} {model} {deployment} {replica} are replaced; "sluice" first means this binary
	Env          map[string]string `yaml:"env"`
	Dir          string            `yaml:"dir"`
	Probe        ProbeFile         `yaml:"probe"`
	ColdStart    Span              `yaml:"cold_start"`
	DrainTimeout Span              `yaml:"drain_timeout"`
	StopTimeout  Span              `yaml:"stop_timeout"`
	Simulated    SimulatedFile     `yaml:"simulated"`
}

// ProbeFile tells how readiness is asked.
type ProbeFile struct {
	Path     string `yaml:"path"`
	Status   int    `yaml:"status"`
	Interval Span   `yaml:"interval"`
	Timeout  Span   `yaml:"timeout"`
	Failures int    `yaml:"failures"`
}

// SimulatedFile is how a config behaves under the simulated driver: its replicas
// are model servers inside this process.
type SimulatedFile struct {
	ColdStart Span    `yaml:"cold_start"`
	Latency   string  `yaml:"latency"` // "120ms", "normal(120ms,20ms)", …
	Tokens    int     `yaml:"tokens"`
	ErrorRate float64 `yaml:"error_rate"`
}

// GatewayFile shapes the data plane.
type GatewayFile struct {
	MaxBodyBytes     int64 `yaml:"max_body_bytes"`     // of one request, default 32 MiB
	MaxBufferedBytes int64 `yaml:"max_buffered_bytes"` // of all requests that are held, default 256 MiB
	RequireKey       *bool `yaml:"require_key"`        // default: only when it listens beyond loopback
}

// MeterFile shapes the meter.
type MeterFile struct {
	Slot      Span `yaml:"slot"`      // length of a slot, default 5 s; at most half of the shortest window
	Tolerance Span `yaml:"tolerance"` // unmeasured time that a gate's window may hold, default two slots
}

// Span is a duration such as 90s or 10m.
type Span time.Duration

// UnmarshalYAML reads a duration and refuses a negative one.
func (s *Span) UnmarshalYAML(node *yaml.Node) error {
	d, err := time.ParseDuration(node.Value)
	switch {
	case err != nil && node.Kind == yaml.ScalarNode && isNumber(node.Value):
		return fmt.Errorf("line %d: duration %s has no unit: use %ss or, say, 10m", node.Line, node.Value, node.Value)
	case err != nil:
		return fmt.Errorf("line %d: %q is not a duration such as 90s or 10m", node.Line, node.Value)
	case d < 0:
		return fmt.Errorf("line %d: duration %s is negative", node.Line, node.Value)
	}
	*s = Span(d)
	return nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// ReadFile reads and checks a configuration file; an empty path is the defaults.
func ReadFile(path string) (File, error) {
	var f File
	if path == "" {
		return f, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("read the configuration: %w", err)
	}
	if err := decodeFile(path, text, &f); err != nil {
		return f, err
	}
	err = f.Check()
	var wrong *fieldError
	if errors.As(err, &wrong) {
		return f, fmt.Errorf("%s:%d: %w", path, lineOf(text, wrong.path), err)
	}
	return f, err
}

// fieldError is a value that cannot be run; path leads to it, keys and indices.
type fieldError struct {
	path    []any
	message string
}

func (e *fieldError) Error() string { return fieldAt(e.path) + ": " + e.message }

func wrongField(path []any, format string, args ...any) error {
	return &fieldError{path: path, message: fmt.Sprintf(format, args...)}
}

func at(path ...any) []any { return path }

// lineOf finds the line of a value, or of what stands nearest above it.
func lineOf(text []byte, path []any) int {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return 1
	}
	node := doc.Content[0]
	for _, p := range path {
		next := child(node, p)
		if next == nil {
			break
		}
		node = next
	}
	return node.Line
}

// child is one step down; nil when there is none.
func child(node *yaml.Node, step any) *yaml.Node {
	switch step := step.(type) {
	case int:
		if node.Kind == yaml.SequenceNode && step < len(node.Content) {
			return node.Content[step]
		}
	case string:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	}
	return nil
}

var slugForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Check names the first thing that could not be run.
func (f File) Check() error {
	if f.Project.Slug != "" && !slugForm.MatchString(f.Project.Slug) {
		return wrongField(at("project", "slug"), "%q: use lower-case letters, digits and dashes", f.Project.Slug)
	}
	if n := f.Gateway.MaxBodyBytes; n < 0 {
		return wrongField(at("gateway", "max_body_bytes"), "%d is negative", n)
	}
	if d := f.Fleet.Driver; d != "" && d != driverProcess && d != driverSimulated {
		return wrongField(at("fleet", "driver"), "%q: use %s or %s", d, driverProcess, driverSimulated)
	}
	if v := f.Fleet.Servers; v != "" && v != serversReplica && v != serversConfig {
		return wrongField(at("fleet", "servers"), "%q: use %s or %s", v, serversReplica, serversConfig)
	}
	if err := f.checkTimings(); err != nil {
		return err
	}
	if err := f.Entitlement.check(); err != nil {
		return err
	}
	hardware := map[string]bool{}
	for i, h := range f.Hardware {
		switch {
		case h.ID == "":
			return wrongField(at("hardware", i), "it has no id")
		case hardware[h.ID]:
			return wrongField(at("hardware", i, "id"), "%q stands twice", h.ID)
		}
		if err := h.check(at("hardware", i)); err != nil {
			return err
		}
		hardware[h.ID] = true
	}
	seen := map[string]bool{}
	for i, c := range f.Configs {
		if err := f.checkConfig(c, at("configs", i), hardware, seen); err != nil {
			return err
		}
		seen[c.ID] = true
	}
	return nil
}

// check refuses numbers that nothing can have.
func (h HardwareFile) check(path []any) error {
	under := func(key ...any) []any { return append(slices.Clone(path), key...) }
	for key, n := range map[string]int{"gpu_count": h.GPUCount, "gpu_memory_gib": h.GPUMemoryGiB, "price_cents_per_hour": h.PriceCentsPerHour} {
		if n < 0 {
			return wrongField(under(key), "%d is negative", n)
		}
	}
	if c := h.Capacity; c != nil && *c < 0 {
		return wrongField(under("capacity"), "%d is negative; leave it out for no limit but the GPUs'", *c)
	}
	seen := map[int]bool{}
	for i, gpu := range h.GPUs {
		switch {
		case gpu < 0:
			return wrongField(under("gpus", i), "%d is negative", gpu)
		case seen[gpu]:
			return wrongField(under("gpus", i), "GPU %d stands twice", gpu)
		}
		seen[gpu] = true
	}
	return nil
}

// checkTimings refuses waits with which no gate could ever be judged.
func (f File) checkTimings() error {
	t := f.timings()
	slot := cmp.Or(time.Duration(f.Meter.Slot), 5*time.Second)
	switch {
	case t.DefaultWindow < t.MinimumWindow:
		return wrongField(at("timings", "default_window"), "%s is below the minimum_window of %s", t.DefaultWindow, t.MinimumWindow)
	case t.DefaultWindow > engine.LongestWindow:
		return wrongField(at("timings", "default_window"), "%s is longer than the %s that the meter remembers", t.DefaultWindow, engine.LongestWindow)
	case engine.LongestWindow+t.IngestionLag+t.Confirmation+t.GateSettle > memory:
		return wrongField(at("timings", "ingestion_lag"), "lag, confirmation and settling of %s are more than the meter can look back beyond a window", t.IngestionLag+t.Confirmation+t.GateSettle)
	case slot*2 > t.MinimumWindow:
		return wrongField(at("meter", "slot"), "%s is longer than half of the shortest window, %s: a gate would never see a whole one", slot, t.MinimumWindow)
	}
	return nil
}

func (f File) checkConfig(c ConfigFile, path []any, hardware, seen map[string]bool) error {
	under := func(key string) []any { return append(slices.Clone(path), key) }
	switch {
	case !strings.HasPrefix(c.ID, "cr_"):
		return wrongField(under("id"), "%q: begin it with cr_", c.ID)
	case seen[c.ID]:
		return wrongField(under("id"), "%q stands twice", c.ID)
	case len(c.Models) == 0:
		return wrongField(under("models"), "%s names no models; \"*\" stands for any", c.ID)
	case !hardware[c.Hardware]:
		return wrongField(under("hardware"), "%q is not in the inventory%s", c.Hardware, meant(c.Hardware, slices.Sorted(maps.Keys(hardware))))
	case len(c.Command) == 0 && f.Fleet.Driver != driverSimulated:
		return wrongField(under("command"), "%s has no command", c.ID)
	}
	for i, arg := range c.Command {
		if got, right := misspelt(arg); got != "" {
			return wrongField(append(under("command"), i), "%s is not a placeholder; did you mean %s?", got, right)
		}
	}
	if s := c.Probe.Status; s != 0 && (s < 100 || s > 599) {
		return wrongField(append(under("probe"), "status"), "%d is not an HTTP status", s)
	}
	if n := c.Probe.Failures; n < 0 {
		return wrongField(append(under("probe"), "failures"), "%d is negative", n)
	}
	if _, err := c.modelServer(""); err != nil {
		return wrongField(under("simulated"), "%s", err)
	}
	return nil
}

// meant suggests a name, or lists those that there are.
func meant(word string, of []string) string {
	if near := nearest(word, of); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(of) == 0 {
		return ", which is empty"
	}
	return ": " + strings.Join(of, ", ")
}

const (
	driverProcess   = "process"
	driverSimulated = "simulated"

	serversReplica = "replica"
	serversConfig  = "config"
)

func (f File) timings() rollout.Timings {
	t := rollout.DefaultTimings()
	for _, o := range []struct {
		to   *time.Duration
		from Span
	}{
		{&t.Propagation, f.Timings.Propagation}, {&t.IngestionLag, f.Timings.IngestionLag}, {&t.DefaultWindow, f.Timings.DefaultWindow},
		{&t.MinimumWindow, f.Timings.MinimumWindow}, {&t.DefaultInterval, f.Timings.DefaultInterval}, {&t.Stabilization, f.Timings.Stabilization},
		{&t.Confirmation, f.Timings.Confirmation}, {&t.PeekEvery, f.Timings.PeekEvery}, {&t.GateSettle, f.Timings.GateSettle},
		{&t.RetryInterval, f.Timings.RetryInterval}, {&t.RetryFor, f.Timings.RetryFor}, {&t.ReadyDeadline, f.Timings.ReadyDeadline},
		{&t.DrainDeadline, f.Timings.DrainDeadline},
	} {
		if o.from > 0 {
			*o.to = time.Duration(o.from)
		}
	}
	return t
}

func (f File) pools() []fleet.Pool {
	out := make([]fleet.Pool, 0, len(f.Hardware))
	for _, h := range f.Hardware {
		capacity := -1
		if h.Capacity != nil {
			capacity = *h.Capacity
		}
		out = append(out, fleet.Pool{GPUs: h.GPUs, Hardware: rollout.Hardware{
			ID: h.ID, Name: h.Name, Description: h.Description, GPUType: h.GPUType, GPUCount: h.GPUCount,
			GPUMemoryGiB: h.GPUMemoryGiB, PriceCentsPerHour: h.PriceCentsPerHour, Region: h.Region, Capacity: capacity,
		}})
	}
	return out
}

// serving turns the declared configs into the core's noun. A command that begins
// with "sluice" runs the binary that serves.
func (f File) serving(self string) []rollout.ServingConfig {
	out := make([]rollout.ServingConfig, 0, len(f.Configs))
	for _, c := range f.Configs {
		command := c.Command
		if len(command) > 0 && command[0] == "sluice" {
			command = append([]string{self}, command[1:]...)
		}
		name := c.Name
		if name == "" {
			name = c.ID
		}
		out = append(out, fleet.WithDefaults(rollout.ServingConfig{
			ID: c.ID, Name: name, Models: c.Models, Hardware: c.Hardware, Command: command, Env: c.Env, Dir: c.Dir,
			Probe:     rollout.Probe{Path: c.Probe.Path, Status: c.Probe.Status, Interval: time.Duration(c.Probe.Interval), Timeout: time.Duration(c.Probe.Timeout), Failures: c.Probe.Failures},
			ColdStart: time.Duration(c.ColdStart), DrainTimeout: time.Duration(c.DrainTimeout), StopTimeout: time.Duration(c.StopTimeout),
			Simulated: rollout.SimulatedServing{ColdStart: time.Duration(c.Simulated.ColdStart)},
		}))
	}
	return out
}

// modelServer is the server behind a simulated replica.
func (c ConfigFile) modelServer(model string) (modelserver.Config, error) {
	out := modelserver.Config{Model: model, Tokens: c.Simulated.Tokens, ErrorRate: c.Simulated.ErrorRate}
	if c.Simulated.Latency != "" {
		l, err := modelserver.ParseLatency(c.Simulated.Latency)
		if err != nil {
			return out, err
		}
		out.Latency = l
	}
	return out, out.Validate()
}
