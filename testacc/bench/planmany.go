package main

import (
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

// crowds are the numbers of rollouts of one endpoint.
var crowds = []int{1, 100, 1000}

// runs is what plans of one configuration took.
type runs struct {
	seconds, mebibytes []float64 // mebibytes of the largest process: terraform or the provider
}

// planMany times a plan and a refresh that change nothing, of many finished rollouts of
// one endpoint, beside as many resources of a provider that does nothing. The rollouts
// are one, shown as many; the calls are counted where they are shown.
func (b *bench) planMany(ctx context.Context, e *engine, terraform string, env []string) error {
	home := &workspace{dir: filepath.Join(b.dir, "many"), terraform: terraform, env: env}
	if err := home.prepare(ctx, fmt.Sprintf(sluiceBase, "chat-many"), "", true); err != nil {
		return err
	}
	one := fmt.Sprintf(sluiceMany, 1)
	if err := os.WriteFile(filepath.Join(home.dir, "change.tf"), []byte(one), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"apply", "-auto-approve"}, {"apply", "-auto-approve", "-refresh-only"}} {
		if err := home.run(ctx, args...); err != nil {
			return err
		}
	}
	state, err := os.ReadFile(filepath.Join(home.dir, "terraform.tfstate"))
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
	for _, n := range crowds {
		c, err := crowd.New(e.api, project, rollout, n)
		if err != nil {
			return err
		}
		s := httptest.NewServer(http.Handler(c))
		err = b.rowsOf(ctx, t, n, repeats, c, home, s.URL, state)
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
func (b *bench) rowsOf(ctx context.Context, t table, n, repeats int, c *crowd.Crowd, home *workspace, url string, state []byte) error {
	many, err := crowd.State(state, n)
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(home.dir, "terraform.tfstate"), many, 0o600),
		os.WriteFile(filepath.Join(home.dir, "change.tf"), []byte(fmt.Sprintf(sluiceMany, n)), 0o600),
	); err != nil {
		return err
	}
	own := &workspace{dir: home.dir, terraform: home.terraform, env: append(append([]string(nil), home.env...), "SLUICE_ENGINE_URL="+url)}
	empty := &workspace{dir: filepath.Join(b.dir, fmt.Sprint("many-empty-", n)), terraform: home.terraform, env: home.env}
	if err := empty.prepare(ctx, fmt.Sprintf(emptyBase, "chat")+fmt.Sprintf(emptyMany, n), "", true); err != nil {
		return err
	}
	for _, args := range [][]string{{"plan"}, {"plan", "-refresh-only"}} {
		var took [2]runs
		calls := 0
		for range repeats {
			c.Calls()
			for i, w := range []*workspace{own, empty} {
				if err := w.measure(ctx, &took[i], args...); err != nil {
					return err
				}
			}
			calls = c.Calls()
		}
		label := fmt.Sprintf("%d rollout(s), %s", n, map[int]string{1: "plan", 2: "refresh only"}[len(args)])
		t.row(label, number("%.2f", median(took[0].seconds)), number("%.2f", median(took[1].seconds)), number("%.2f", median(ratios(took[0].seconds, took[1].seconds))),
			number("%.0f", median(took[0].mebibytes)), number("%.0f", median(took[1].mebibytes)), number("%.2f", median(ratios(took[0].mebibytes, took[1].mebibytes))), fmt.Sprint(calls))
	}
	return nil
}

// measure runs terraform and adds how long it took and its largest process.
func (w *workspace) measure(ctx context.Context, to *runs, args ...string) error {
	cmd := exec.CommandContext(ctx, w.terraform, append(args, "-input=false", "-no-color")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("terraform %s: %w: %s", args[0], err, out[max(0, len(out)-800):])
	}
	to.seconds = append(to.seconds, time.Since(began).Seconds())
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		to.mebibytes = append(to.mebibytes, float64(used.Maxrss)/1024)
	}
	return nil
}
