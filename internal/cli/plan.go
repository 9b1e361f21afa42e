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
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
)

// ExitPending is the exit code of a plan with --exit-code that has something to do. 2,
// which others have for it, is a command line that cannot be meant.
const ExitPending = 5

// planFlags are the words of "sluice plan" and "sluice apply".
type planFlags struct {
	assign   []declaration.Assignment
	policy   string
	data     string
	out      string
	exitCode bool
	yes      bool
	noWait   bool
}

const planCodes = `Exit codes: 0 planned, 1 it cannot be planned or a policy denies it, 2 the command line;
with --exit-code 5 when there is something to do.`

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "plan PATH",
		Short: "Show what a folder of HCL would change, without Terraform and without touching anything",
		Long: `Show what a folder of .tf files would change at the engine: each thing that is made,
changed or left, each rollout step by step on what stands now, and what a policy says.
The folder is the one that Terraform takes; variables come from terraform.tfvars,
*.auto.tfvars, TF_VAR_name, --var and --var-file, in Terraform's order. No state is kept:
things are found by their names, a rollout by its spec. Nothing is ever planned to be
deleted. --json prints the shape of terraform show -json, for the same policies.

` + planCodes,
		Example: `  sluice plan examples/canary --var window=60s
  sluice plan . --policy policy --json > plan.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.planFolder(cmd.Context(), args[0], f)
		},
	}
	f.common(c)
	fl := c.Flags()
	fl.StringVar(&f.out, "out", "", "also write the plan's JSON to this file, for sluice policy")
	fl.BoolVar(&f.exitCode, "exit-code", false, "exit with 5 when there is something to do")
	return c
}

func (f *planFlags) common(c *cobra.Command) {
	fl := c.Flags()
	fl.Var(&assignments{list: &f.assign}, "var", "a variable, name=value; repeatable")
	fl.Var(&assignments{list: &f.assign, read: os.ReadFile}, "var-file", "a .tfvars or .tfvars.json file; repeatable")
	fl.StringVar(&f.policy, "policy", "", "folder of *.rego files and their data.json that judge the plan")
	fl.StringVar(&f.data, "policy-data", "", "JSON file that goes over the rules' data, such as approvals")
}

// folderPlan is a folder at an engine.
type folderPlan struct {
	app    *app
	client *engineclient.Client
	live   *reconciler.Live
	folder string
	flags  planFlags

	applies bool // with --json an apply prints what came of it, and not the plan
}

func (a *app) folderPlan(folder string, f planFlags) (*folderPlan, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder: %w", err)
	}
	if !info.IsDir() {
		return nil, usagef("%s is a file: give the folder of .tf files", folder)
	}
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	return &folderPlan{app: a, client: c, live: reconciler.NewLive(c), folder: folder, flags: f}, nil
}

// changes plans on what stands now. An apply is held by the owner of an endpoint, a plan
// tells who that is.
func (p *folderPlan) changes(ctx context.Context) (planning.Changes, declaration.Diagnostics, error) {
	if err := p.live.Refresh(ctx); err != nil {
		return planning.Changes{}, nil, err
	}
	load := func(o declaration.Options) (declaration.Set, declaration.Diagnostics) {
		return declaration.Load(p.folder, o)
	}
	past := reconciler.Past{Sees: reconciler.OwnersTold}
	if p.applies {
		past.Sees = nil
	}
	return reconciler.PlanFolder(ctx, p.live, load, declaration.Options{Assign: p.flags.assign, Environ: os.Environ()}, past)
}

// planned plans once for a person, who sees what is wrong with the folder.
func (p *folderPlan) planned(ctx context.Context) (planning.Changes, error) {
	changes, found, err := p.changes(ctx)
	if err != nil {
		return changes, err
	}
	if found.HasErrors() && p.app.json {
		return changes, found.Err()
	}
	if !p.app.json {
		if err := found.Render(p.app.Err); err != nil {
			return changes, err
		}
	}
	if found.HasErrors() {
		return changes, &endedError{ExitFailed}
	}
	return reconciler.LookAhead(ctx, p.client, changes)
}

func (a *app) planFolder(ctx context.Context, folder string, f planFlags) error {
	p, err := a.folderPlan(folder, f)
	if err != nil {
		return err
	}
	changes, err := p.planned(ctx)
	if err != nil {
		return err
	}
	if err := p.show(ctx, changes); err != nil {
		return err
	}
	if f.exitCode && len(changes.Pending()) > 0 {
		return &endedError{ExitPending}
	}
	return nil
}

// show prints a plan and what the policy says of it; a denial is an error.
func (p *folderPlan) show(ctx context.Context, changes planning.Changes) error {
	doc, err := changes.JSON()
	if err != nil {
		return err
	}
	if p.flags.out != "" {
		if err := os.WriteFile(p.flags.out, doc, 0o600); err != nil {
			return fmt.Errorf("write the plan: %w", err)
		}
	}
	switch {
	case p.app.json && p.applies:
	case p.app.json:
		_, err = p.app.Out.Write(doc)
	default:
		err = p.text(changes)
	}
	if err != nil || p.flags.policy == "" {
		return err
	}
	return p.judge(ctx, doc)
}

// judge asks the policy. With --json its words go beside the plan, which has the output
// to itself.
func (p *folderPlan) judge(ctx context.Context, doc []byte) error {
	v, err := verdict(ctx, doc, policyFlags{rules: p.flags.policy, data: p.flags.data, within: 10 * time.Second})
	if err != nil {
		return err
	}
	out := p.app.Out
	if p.app.json {
		out = p.app.Err
	}
	if err := render.Policy(out, v, p.app.options(time.Time{})); err != nil {
		return err
	}
	if v.Denied() {
		return &endedError{ExitFailed}
	}
	return nil
}

// text prints the changes, and each rollout's way on what stands now.
func (p *folderPlan) text(changes planning.Changes) error {
	o := p.app.options(time.Time{})
	if err := render.Changes(p.app.Out, changes, o); err != nil {
		return err
	}
	for _, c := range changes.List {
		if !c.Makes() || c.Journey == nil {
			continue
		}
		p.app.printf("\n")
		if err := p.rolloutText(c); err != nil {
			return err
		}
	}
	return nil
}

func (p *folderPlan) rolloutText(c planning.Change) error {
	title := c.Endpoint + " by " + c.Address.String()
	j, notes := *c.Journey, []string(nil)
	if a := c.Ahead; a != nil && a.Refused == "" && c.Blocked == "" {
		j = a.Journey()
		for _, f := range j.Findings {
			if !toldLive(a.Preview)(f) {
				continue
			}
			j.Findings = without(j.Findings, f.Code)
		}
		notes = remarks(a.Spec, a.Preview)
	} else {
		j.Findings = append(j.Findings, c.Findings...)
	}
	o := p.app.options(time.Time{})
	if err := render.Plan(p.app.Out, title, j, o); err != nil || len(notes) == 0 {
		return err
	}
	return render.Notes(p.app.Out, notes, o)
}

func without(all []planning.Finding, code planning.Code) []planning.Finding {
	var out []planning.Finding
	for _, f := range all {
		if f.Code != code {
			out = append(out, f)
		}
	}
	return out
}

// errNoTerminal is an apply that nobody can agree to.
var errNoTerminal = errors.New("nobody is asked here, since standard input is no terminal: give --yes to apply without a question")

// confirmed asks whether to go on.
func (a *app) confirmed(f planFlags) (bool, error) {
	if f.yes {
		return true, nil
	}
	if a.Ask == nil {
		return false, &usageError{errNoTerminal}
	}
	said, err := a.Ask("Apply this plan? Only y or yes does. ")
	if errors.Is(err, io.EOF) {
		return false, &usageError{errNoTerminal}
	}
	if err != nil {
		return false, err
	}
	said = strings.ToLower(strings.TrimSpace(said))
	return said == "y" || said == "yes", nil
}
