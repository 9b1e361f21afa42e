package declaration

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// Options are what a folder's meaning depends on besides its files.
type Options struct {
	// Assign gives variables their values last, in this order, as flags do.
	Assign []Assignment
	// Environ is an environment as os.Environ gives it; TF_VAR_name is read.
	Environ []string
	// Known are values that an engine has given already: ids, and whatever else it tells
	// of what stands.
	Known map[Ref]cty.Value
	// Timings of the engine, whose shortest window a gate must keep. Without them
	// that one rule is not checked.
	Timings *rollout.Timings
}

// Assignment is a value for one variable as text, or a file of values.
type Assignment struct {
	Name, Text string
	File       *File
}

// Load reads a folder as it lies on disk. The set is complete when the diagnostics
// have no error; with one it holds what could be understood and is for display only.
func Load(dir string, options Options) (Set, Diagnostics) {
	report := &reporter{}
	return load(report, readFolder(report, dir), options)
}

// LoadFiles reads the files of one folder that were taken from elsewhere, such as
// blobs of a commit; their names may be paths. Only those that Terraform would read
// are looked at.
func LoadFiles(files []File, options Options) (Set, Diagnostics) {
	var taken []File
	for _, f := range files {
		if isDeclaration(f.Name) {
			taken = append(taken, f)
		}
	}
	return load(&reporter{}, taken, options)
}

func load(report *reporter, files []File, options Options) (Set, Diagnostics) {
	files = admit(report, files)
	sources := map[string][]byte{}
	var bodies []*hclsyntax.Body
	configs := 0
	for _, f := range files {
		sources[f.Name] = f.Bytes
		if !isConfig(f.Name) {
			continue
		}
		configs++
		if b := parse(report, f); b != nil {
			bodies = append(bodies, b)
		}
	}
	for _, a := range options.Assign {
		if a.File != nil {
			sources[a.File.Name] = a.File.Bytes
		}
	}
	if configs == 0 && !report.found.HasErrors() {
		report.refuse(hcl.Range{}, "No declarations", "The folder has no .tf files.", "")
	}
	set := Set{}
	if !report.found.HasErrors() {
		set = understand(report, bodies, files, options)
	}
	return set, report.finish(sources)
}

func parse(report *reporter, f File) *hclsyntax.Body {
	parsed, diags := hclsyntax.ParseConfig(f.Bytes, f.Name, hcl.InitialPos)
	report.take(diags)
	if diags.HasErrors() || parsed == nil {
		return nil
	}
	body, ok := parsed.Body.(*hclsyntax.Body)
	if !ok {
		return nil
	}
	return body
}

// withinFile checks a file of values that was named from outside.
func withinFile(report *reporter, f File) bool {
	return len(admit(report, []File{f})) == 1
}

// understand evaluates what was parsed. References are checked first: nothing is
// evaluated whose references lead nowhere or in a circle.
func understand(report *reporter, bodies []*hclsyntax.Body, files []File, options Options) Set {
	m := collect(report, bodies)
	m.resolve()
	ordered := m.order()
	if report.found.HasErrors() {
		return Set{Moves: m.moves}
	}
	values := gather(m, files, options)
	meaning := newEvaluator(m, report, unknowns, values, options.Known)
	meaning.run(ordered)
	again := func(only *Ref) *evaluator {
		e := newEvaluator(m, &reporter{}, tokens, values, options.Known) // its remarks would be the same ones
		e.expanded, e.only = meaning.instances, only
		e.run(ordered)
		return e
	}
	d := &declarer{report: report, timings: timingsOf(options), meaning: meaning, passed: again(nil), alone: map[Ref]*evaluator{}}
	d.again = func(only Ref) *evaluator { return again(&only) }
	d.run(ordered)
	d.set.Moves, d.set.Written = m.moves, m.written()
	d.set.Variables, d.set.Checks = meaning.variables(), slices.Concat(meaning.checks, m.unread)
	d.across()
	return d.set
}

func newEvaluator(m *module, report *reporter, in standIn, values map[string]assigned, known map[Ref]cty.Value) *evaluator {
	return &evaluator{module: m, report: report, standIn: in, assigned: values, known: known, values: map[nodeID]cty.Value{}, instances: map[nodeID][]*instance{}}
}

func timingsOf(o Options) rollout.Timings {
	if o.Timings != nil {
		return *o.Timings
	}
	t := rollout.DefaultTimings()
	t.MinimumWindow = 0
	return t
}

// across checks what no block shows alone: a rollout's sides belong to its endpoint,
// and an endpoint has one rollout at a time.
func (d *declarer) across() {
	home := map[Address]Link{}
	for _, dep := range d.set.Deployments {
		home[dep.Address] = dep.Endpoint
	}
	holder := map[string]Address{}
	for _, r := range d.set.Rollouts {
		for _, side := range []Link{r.Source, r.Target} {
			if side.To == nil {
				continue
			}
			if of := home[side.To.Address]; of.String() != "" && r.Endpoint.String() != "" && !of.Same(r.Endpoint) && (of.To == nil) == (r.Endpoint.To == nil) {
				d.report.refuse(side.Range, "A deployment of another endpoint", fmt.Sprintf("%s belongs to %s, the rollout moves traffic of %s.", side.To.Address, of, r.Endpoint), "name two deployments of one endpoint")
			}
		}
		if on := r.Endpoint.String(); on != "" {
			if first, taken := holder[on]; taken {
				d.report.add(Warning, r.Range, "Two rollouts of one endpoint", fmt.Sprintf("%s moves traffic of %s too; the second is refused while the first holds the endpoint.", first, on), "keep the one that is wanted now")
			} else {
				holder[on] = r.Address
			}
		}
	}
}
