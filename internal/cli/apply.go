package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
	"github.com/sluice-dev/terraform-provider-sluice/internal/render"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
)

func (a *app) applyCommand() *cobra.Command {
	var f planFlags
	c := &cobra.Command{
		Use:   "apply PATH",
		Short: "Make it so: apply a folder of HCL and wait for its rollouts, without Terraform",
		Long: `Plan a folder of .tf files as sluice plan does, ask, and apply it: endpoints and
deployments first, then each rollout, which is waited for until it is COMPLETED, parked or
CANCELED. Applied again it goes on where it was: nothing is made twice, a rollout of the
same spec that runs is waited for, and one that a person has canceled stays so. Nothing is
ever deleted.

Exit codes: 0 done, 1 failed, denied or not agreed to, 2 the command line, 3 a rollout is
parked and waits for a person, 4 a rollout was canceled.`,
		Example: `  sluice apply examples/canary --var window=60s
  sluice apply . --yes --policy policy --no-wait`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.applyFolder(cmd.Context(), args[0], f)
		},
	}
	f.common(c)
	fl := c.Flags()
	fl.BoolVar(&f.yes, "yes", false, "apply without asking")
	fl.BoolVar(&f.noWait, "no-wait", false, "return once the rollouts are started")
	return c
}

func (a *app) applyFolder(ctx context.Context, folder string, f planFlags) error {
	if a.json && !f.yes {
		return usagef("--json goes with --yes: a question would stand in the output")
	}
	p, err := a.folderPlan(folder, f)
	if err != nil {
		return err
	}
	p.applies = true
	changes, err := p.planned(ctx)
	if err != nil {
		return err
	}
	if err := p.show(ctx, changes); err != nil {
		return err
	}
	if err := refuseBlocked(changes); err != nil {
		return err
	}
	if !due(changes) {
		return p.told(ctx, changes, nil)
	}
	yes, err := a.confirmed(f)
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("not applied: nothing was changed")
	}
	return p.apply(ctx, changes)
}

// due reports whether there is something to do or to wait for.
func due(changes planning.Changes) bool {
	for _, c := range changes.List {
		if c.Pending() || c.Waits {
			return true
		}
	}
	return false
}

// refuseBlocked ends an apply before its first write when a part of it cannot be done.
func refuseBlocked(changes planning.Changes) error {
	for _, c := range changes.List {
		owned := slices.IndexFunc(changes.Standing.Endpoints, func(e planning.StandingEndpoint) bool { return e.ID == c.EndpointID && e.Owner != "" })
		switch {
		case c.Blocked != "" && owned >= 0:
			name, owner := planning.BareName(changes.Standing.Endpoints[owned].Name), changes.Standing.Endpoints[owned].Owner
			return fmt.Errorf("nothing was changed: endpoint %s is reconciled by %s. Merge the change into what that follows, or take the endpoint from it: sluice reconcile release %[1]s --reason WHY", name, owner)
		case c.Blocked != "":
			return fmt.Errorf("nothing was changed: %s is blocked: %s", c.Address, c.Blocked)
		case c.Protected && c.Action == planning.Replace:
			return fmt.Errorf("nothing was changed: %s would be replaced, and prevent_destroy keeps it", c.Address)
		}
	}
	return nil
}

func (p *folderPlan) apply(ctx context.Context, changes planning.Changes) error {
	run := &reconciler.FolderApply{Client: p.client, Origin: origin(p.folder), Tell: &teller{app: p.app, began: time.Now()}, Replan: p.replan}
	if p.flags.noWait {
		run.Waiting = reconciler.NoWait
	}
	ended, err := run.Apply(ctx, changes)
	if told := p.told(ctx, changes, ended); told != nil && err == nil {
		err = told
	}
	if err != nil {
		return interrupted(err)
	}
	return endedAs(ended)
}

// applied is the JSON of "sluice apply".
type applied struct {
	Digest   string            `json:"plan_digest"`
	Summary  string            `json:"summary"`
	Rollouts []appliedRollout  `json:"rollouts"`
	Bindings map[string]string `json:"ids"` // of what stood already, by address
}

type appliedRollout struct {
	Address string      `json:"address"`
	Outcome string      `json:"outcome,omitempty"` // completed, parked or canceled; absent for one that was not waited for
	Rollout api.Rollout `json:"rollout"`
}

// told prints what became of the rollouts.
func (p *folderPlan) told(ctx context.Context, changes planning.Changes, ended []reconciler.Ended) error {
	if !p.app.json {
		for _, e := range ended {
			ep, err := p.client.GetEndpoint(ctx, e.Change.EndpointID)
			if err != nil {
				return err
			}
			if err := render.Rollout(p.app.Out, e.Rollout, p.app.named(ep)); err != nil {
				return err
			}
		}
		return nil
	}
	out := applied{Digest: changes.Digest(), Summary: changes.Summary(), Rollouts: []appliedRollout{}, Bindings: map[string]string{}}
	for _, e := range ended {
		out.Rollouts = append(out.Rollouts, appliedRollout{e.Change.Address.String(), string(e.Outcome), e.Rollout})
	}
	for address, id := range changes.Bindings() {
		out.Bindings[address.String()] = id
	}
	return p.app.printJSON(out)
}

// replan plans again for an apply that is under way; what is wrong with the folder by then
// is an error.
func (p *folderPlan) replan(ctx context.Context) (planning.Changes, error) {
	changes, found, err := p.changes(ctx)
	if err == nil {
		err = found.Err()
	}
	return changes, err
}

// endedAs is the exit code of an apply's rollouts: a parked one comes first, since it
// waits for a person.
func endedAs(ended []reconciler.Ended) error {
	code := ExitOK
	for _, e := range ended {
		switch e.Outcome {
		case engineclient.WasParked:
			return &endedError{ExitParked}
		case engineclient.Canceled:
			code = ExitCanceled
		case engineclient.Completed:
		}
	}
	if code != ExitOK {
		return &endedError{code}
	}
	return nil
}

// origin says who applies what, for those who read the feed later.
func origin(folder string) string {
	who := "somebody"
	if u, err := user.Current(); err == nil && u.Username != "" {
		who = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("sluice apply %s by %s@%s", folder, who, host)
}

// teller writes one line for each thing that an apply does or waits for.
type teller struct {
	app   *app
	began time.Time
}

// Did tells what was done.
func (t *teller) Did(c planning.Change, d reconciler.Done) {
	verb := map[planning.Action]string{planning.Create: "made", planning.Update: "changed", planning.Replace: "replaced", planning.Delete: "deleted", planning.Start: "started", planning.Steer: c.Control.String() + " sent"}[c.Action]
	if d.Adopted {
		verb = "there already"
	}
	t.line(fmt.Sprintf("%s (%s): %s", c.Address, d.ID, verb))
}

// Waits tells what is waited for.
func (t *teller) Waits(c planning.Change, now string) { t.line(c.Address.String() + ": " + now) }

func (t *teller) line(text string) {
	if !t.app.json {
		t.app.progressLine(time.Since(t.began), text)
	}
}

// Rollout tells how a rollout goes on.
func (t *teller) Rollout(c planning.Change) engineclient.Sink {
	return &rolloutTeller{teller: t, address: c.Address}
}

type rolloutTeller struct {
	*teller
	address declaration.Address
}

// Changed writes what is new.
func (t *rolloutTeller) Changed(c engineclient.Change) {
	t.line(t.address.String() + ": " + render.Progress(c.After))
}

// Lost tells that the engine does not answer.
func (t *rolloutTeller) Lost(err error, _ time.Duration) {
	t.line("the engine does not answer, still trying: " + err.Error())
}
