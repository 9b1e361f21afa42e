package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/rehearsal"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
)

// rehearseFlags are the words of "sluice rehearse".
type rehearseFlags struct {
	address, facts, scenario string
	assign                   []declaration.Assignment
	faults                   []string
	seed                     uint64
	runs                     int
}

func (a *app) rehearseCommand() *cobra.Command {
	var f rehearseFlags
	var forms strings.Builder
	for _, k := range rehearsal.FaultKinds() {
		fmt.Fprintf(&forms, "\n  %-38s %s", k.Form, k.Does)
	}
	c := &cobra.Command{
		Use:   "rehearse PATH | rehearse --scenario FILE",
		Short: "Play a declared rollout in virtual time, before it touches anything",
		Long: `Play a declared rollout on the real engine in virtual time: its timeline, where it would
park and why, peak GPUs, requests served and lost, and what its gates need. PATH is a
folder of .tf files. What HCL does not say (replicas, cold starts, latencies, request
rate, capacity) comes from the engine when --engine or SLUICE_ENGINE_URL names one,
and from --facts, whose words win. Nothing is written anywhere.

Exit codes: 0 it completes, 3 it parks, 1 it cannot be rehearsed, 2 the command line.

Faults:` + forms.String(),
		Example: `  sluice rehearse examples/rehearse --facts examples/rehearse/facts.yaml
  sluice rehearse . --facts facts.yaml --fault replica-death@step2 --runs 200`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.scenario != "" {
				if len(args) > 0 {
					return usagef("--scenario goes alone, or with --json")
				}
				return a.playScenario(cmd.Context(), f.scenario)
			}
			if len(args) != 1 {
				return usagef("give the folder of .tf files, or --scenario FILE")
			}
			return a.rehearse(cmd.Context(), args[0], f)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.address, "address", "", "which rollout, when the folder has several: sluice_rollout.x")
	fl.StringVar(&f.facts, "facts", "", "YAML file of what HCL does not say (docs/rehearse.md)")
	fl.Var(&assignments{list: &f.assign}, "var", "a variable, name=value; repeatable")
	fl.Var(&assignments{list: &f.assign, read: os.ReadFile}, "var-file", "a .tfvars or .tfvars.json file; repeatable")
	fl.Uint64Var(&f.seed, "seed", 1, "of everything random: the same seed plays the same")
	fl.IntVar(&f.runs, "runs", 1, "play so many seeds and sum them up")
	fl.StringArrayVar(&f.faults, "fault", nil, "what shall go wrong, such as replica-death@step2; repeatable")
	fl.StringVar(&f.scenario, "scenario", "", "play one scenario file and exit 1 with a diff when it does not hold")
	for _, other := range []string{"address", "facts", "var", "var-file", "seed", "runs", "fault"} {
		c.MarkFlagsMutuallyExclusive("scenario", other)
	}
	return c
}

// assignments is a flag that gives variables their values, in the order of the line.
type assignments struct {
	list *[]declaration.Assignment
	read func(string) ([]byte, error) // for files of them; nil for name=value
}

// String is empty: there is no default.
func (v *assignments) String() string { return "" }

// Type is the word in the help.
func (v *assignments) Type() string {
	if v.read != nil {
		return "file"
	}
	return "name=value"
}

// Set takes one.
func (v *assignments) Set(text string) error {
	if v.read != nil {
		b, err := v.read(text)
		if err != nil {
			return err
		}
		*v.list = append(*v.list, declaration.Assignment{File: &declaration.File{Name: text, Bytes: b}})
		return nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want name=value")
	}
	*v.list = append(*v.list, declaration.Assignment{Name: name, Text: value})
	return nil
}

// rehearse plays a folder's rollout and prints what came of it.
func (a *app) rehearse(ctx context.Context, folder string, f rehearseFlags) error {
	if f.runs < 1 || f.runs > rehearsal.MaxRuns {
		return usagef("--runs %d: want 1 to %d", f.runs, rehearsal.MaxRuns)
	}
	faults := make([]rehearsal.Fault, 0, len(f.faults))
	for _, text := range f.faults {
		fault, err := rehearsal.ParseFault(text)
		if err != nil {
			return &usageError{err}
		}
		faults = append(faults, fault)
	}
	set, r, err := a.declared(folder, f)
	if err != nil {
		return err
	}
	facts, notes, err := a.facts(ctx, set, r, f.facts)
	if err != nil {
		return err
	}
	plan, assumed, err := rehearsal.PlanOf(set, r, facts)
	if err != nil {
		return whileHeld(err, facts)
	}
	plan.Faults = faults
	report, err := rehearsal.Rehearse(ctx, plan, f.seed, f.runs)
	if err != nil {
		return whileHeld(err, facts)
	}
	report.Facts, report.Faults, report.Assumed = facts.From, append(report.Faults, f.faults...), append(append(report.Assumed, notes...), assumed...)
	if a.json {
		err = a.printJSON(report)
	} else {
		err = report.Write(a.Out, a.options(time.Time{}))
	}
	if err == nil && report.Forecast.Parked != nil {
		err = &endedError{ExitParked}
	}
	return err
}

// whileHeld adds to an error that a rollout holds the endpoint, which mostly is the
// cause: it has moved traffic and replicas.
func whileHeld(err error, f rehearsal.Facts) error {
	if f.Holder == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, heldNote(f.Holder))
}

// declared reads a folder and finds the rollout that is meant.
func (a *app) declared(folder string, f rehearseFlags) (declaration.Set, declaration.Rollout, error) {
	set, found := declaration.Load(folder, declaration.Options{Assign: f.assign, Environ: os.Environ()})
	if found.HasErrors() {
		if a.json {
			return set, declaration.Rollout{}, found.Err()
		}
		_ = found.Render(a.Err)
		return set, declaration.Rollout{}, &endedError{ExitFailed}
	}
	if !a.json {
		for _, d := range found {
			if d.Severity == declaration.Warning {
				_ = render.Line(a.Err, render.Inert(d.String()), a.options(time.Time{}))
			}
		}
	}
	var names []string
	for _, r := range set.Rollouts {
		names = append(names, r.Address.String())
	}
	list := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		return set, declaration.Rollout{}, fmt.Errorf("%s declares no sluice_rollout", folder)
	case f.address == "" && len(names) > 1:
		return set, declaration.Rollout{}, usagef("%s declares several rollouts: give --address with one of %s", folder, list)
	case f.address == "":
		return set, set.Rollouts[0], nil
	}
	r, ok := set.Rollout(f.address)
	if !ok {
		return set, r, usagef("no rollout %q in %s: there is %s", f.address, folder, list)
	}
	return set, r, nil
}

// facts are the file's over the engine's. An engine that does not answer is a remark
// when there is a file, and an error when there is none.
func (a *app) facts(ctx context.Context, set declaration.Set, r declaration.Rollout, file string) (rehearsal.Facts, []string, error) {
	var told rehearsal.Facts
	if file != "" {
		text, err := readCapped(file, rehearsal.MaxFacts)
		if err != nil {
			return told, nil, err
		}
		if told, err = rehearsal.ParseFacts(text); err != nil {
			return told, nil, fmt.Errorf("%s: %w", file, err)
		}
		told.From = file
	}
	engine := a.first(a.url, "SLUICE_ENGINE_URL", "TOGETHER_BASE_URL")
	if engine == "" {
		if file == "" {
			return told, nil, usagef("no facts: name an engine (--engine or SLUICE_ENGINE_URL), or give --facts FILE with replicas, cold starts, latencies and the request rate")
		}
		return told, nil, nil
	}
	live, notes, err := a.liveFacts(ctx, set, r)
	if err != nil && file == "" {
		return told, nil, err
	}
	if err != nil {
		return told, []string{fmt.Sprintf("the engine at %s was asked in vain (%s): only the file counts", engine, strings.TrimSuffix(err.Error(), "."))}, nil
	}
	if file == "" {
		return live, notes, nil
	}
	return told.Over(live), notes, nil
}

// readCapped reads a file of at most so many bytes.
func readCapped(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return b, err
}

// playScenario plays a file and shows where its transcript differs.
func (a *app) playScenario(ctx context.Context, file string) error {
	text, err := readCapped(file, rehearsal.MaxFacts)
	if err != nil {
		return err
	}
	out, err := rehearsal.PlayScenario(ctx, string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else if err := out.Write(a.Out); err != nil {
		return err
	}
	if !out.Holds {
		return &endedError{ExitFailed}
	}
	return nil
}
