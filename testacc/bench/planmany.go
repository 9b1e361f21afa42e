package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/testacc/crowd"
)

const (
	sluiceMany = `
resource "sluice_rollout" "many" {
  count                = %d
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  blue_green           = {}
}
`
	emptyMany = `
resource "empty_thing" "many" {
  count = %d
  name  = empty_thing.stable.id
}
`
)

// runs is what plans of one configuration took.
type runs struct {
	seconds, mebibytes []float64 // mebibytes of the largest process: terraform or the provider
}

// many is a folder in which one resource stands, to be shown as many.
type many struct {
	*workspace
	body, address string // of the resource, with its count left open
	state         []byte // with one of it
}

// stand initialises a folder, applies the base with one of the resource, and keeps the
// state.
func (b *bench) stand(ctx context.Context, name, terraform string, env []string, base, body, address string) (*many, error) {
	m := &many{workspace: &workspace{dir: filepath.Join(b.dir, name), terraform: terraform, env: env}, body: body, address: address}
	if err := m.prepare(ctx, fmt.Sprintf(base, "chat"), fmt.Sprintf(body, 1), false); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"apply", "-auto-approve"}, {"apply", "-auto-approve", "-refresh-only"}} {
		if err := m.run(ctx, args...); err != nil {
			return nil, err
		}
	}
	var err error
	m.state, err = os.ReadFile(filepath.Join(m.dir, "terraform.tfstate"))
	return m, err
}

// count makes the resource stand n times.
func (m *many) count(n int) error {
	state, err := crowd.State(m.state, m.address, n)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(m.dir, "terraform.tfstate"), state, 0o600),
		os.WriteFile(filepath.Join(m.dir, "change.tf"), []byte(fmt.Sprintf(m.body, n)), 0o600),
	)
}

// plans times a plan and a refresh that change nothing, of many finished rollouts of
// one endpoint, beside as many resources of a provider that does nothing. The rollouts
// are one, shown as many; the calls are counted where they are shown. So is the other
// resource: to apply a thousand would take longer than all that is measured.
func (b *bench) plans(ctx context.Context) error {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		fmt.Println("\nPlans of many are left out:", err)
		return nil
	}
	e, err := b.startEngine(ctx, "plans", simulatedConfig)
	if err != nil {
		return err
	}
	defer e.stop()
	env, err := b.mirror(e)
	if err != nil {
		return err
	}
	own, err := b.stand(ctx, "many", terraform, env, sluiceBase, sluiceMany, "sluice_rollout.many")
	if err != nil {
		return err
	}
	empty, err := b.stand(ctx, "many-empty", terraform, env, emptyBase, emptyMany, "empty_thing.many")
	if err != nil {
		return err
	}
	rollout, project, err := newestIn(ctx, e.client)
	if err != nil {
		return err
	}
	repeats := min(3, b.size.plans)
	fmt.Println("\nA real terraform plan that changes nothing, of many finished rollouts of one endpoint, beside as many resources that do nothing")
	t := newTable("", "sluice s", "empty s", "×empty", "sluice MiB", "empty MiB", "×empty", "calls to the engine", fmt.Sprintf("(medians of %d interleaved runs)", repeats))
	for _, n := range b.size.crowds {
		c, err := crowd.New(e.api, project, rollout, n)
		if err != nil {
			return err
		}
		s := httptest.NewServer(http.Handler(c))
		own.env = append(append([]string(nil), env...), "SLUICE_ENGINE_URL="+s.URL)
		err = errors.Join(own.count(n), empty.count(n))
		if err == nil {
			err = rowsOf(ctx, t, n, repeats, c, own.workspace, empty.workspace)
		}
		s.Close()
		if err != nil {
			return err
		}
	}
	t.print()
	return nil
}

// newestIn is the one rollout of an engine that has just been made, as it tells it.
func newestIn(ctx context.Context, c *engineclient.Client) (rollout []byte, project string, err error) {
	if project, err = c.Project(ctx); err != nil {
		return nil, "", err
	}
	for ep, err := range c.Endpoints(ctx, engineclient.ListOptions{}) {
		if err != nil {
			return nil, "", err
		}
		for r, err := range c.EveryRollout(ctx, ep.ID) {
			if err != nil {
				return nil, "", err
			}
			rollout, err = json.Marshal(r)
			return rollout, project, err
		}
	}
	return nil, "", errors.New("there is no rollout")
}

// rowsOf times both providers with so many resources and adds a row for each command.
func rowsOf(ctx context.Context, t table, n, repeats int, c *crowd.Crowd, own, empty *workspace) error {
	for _, command := range []struct {
		name string
		args []string
	}{{"plan", []string{"plan"}}, {"refresh only", []string{"plan", "-refresh-only"}}} {
		var took [2]runs
		calls := 0
		for range repeats {
			c.Calls()
			for i, w := range []*workspace{own, empty} {
				if err := w.measure(ctx, &took[i], command.args...); err != nil {
					return err
				}
			}
			calls = c.Calls()
		}
		t.row(fmt.Sprintf("%d rollout(s), %s", n, command.name), number("%.2f", median(took[0].seconds)), number("%.2f", median(took[1].seconds)), number("%.2f", median(ratios(took[0].seconds, took[1].seconds))),
			number("%.0f", median(took[0].mebibytes)), number("%.0f", median(took[1].mebibytes)), number("%.2f", median(ratios(took[0].mebibytes, took[1].mebibytes))), fmt.Sprint(calls))
	}
	return nil
}

// measure runs terraform, which must find nothing to change, and adds how long it took
// and its largest process.
func (w *workspace) measure(ctx context.Context, to *runs, args ...string) error {
	cmd := exec.CommandContext(ctx, w.terraform, append(args, "-input=false", "-no-color")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("terraform %s: %w: %s", args[0], err, out[max(0, len(out)-800):])
	}
	if !bytes.Contains(out, []byte("No changes.")) {
		return fmt.Errorf("terraform %s has changes: %s", args[0], out[max(0, len(out)-800):])
	}
	to.seconds = append(to.seconds, time.Since(began).Seconds())
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		to.mebibytes = append(to.mebibytes, float64(used.Maxrss)/1024)
	}
	return nil
}
