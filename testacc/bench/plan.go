package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// simulatedConfig is an engine whose replicas are model servers inside it.
const simulatedConfig = `
project: {id: proj_bench, slug: bench}
fleet: {driver: simulated}
hardware:
  - {id: 1xbench, gpu_type: none, price_cents_per_hour: 249}
configs:
  - {id: cr_stable, models: [bench/stable], hardware: 1xbench, simulated: {cold_start: 50ms, latency: 0s}}
  - {id: cr_candidate, models: [bench/candidate], hardware: 1xbench, simulated: {cold_start: 50ms, latency: 0s}}
timings: {propagation: 100ms, ingestion_lag: 200ms, minimum_window: 500ms, default_window: 1s, default_interval: 100ms, stabilization: 100ms}
meter: {slot: 50ms}
`

// The two configurations: four resources each, the last of which is the change.
const (
	sluiceBase = `
terraform {
  required_providers {
    sluice = { source = "sluice-dev/sluice" }
  }
}
provider "sluice" {}
resource "sluice_endpoint" "chat" {
  name = "%s"
}
resource "sluice_deployment" "stable" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "stable"
  model                  = "bench/stable"
  config                 = "cr_stable"
  autoscaling            = { min_replicas = 1, max_replicas = 1 }
  initial_traffic_weight = 1
}
resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "candidate"
  model       = "bench/candidate"
  config      = "cr_candidate"
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}
`
	sluiceChange = `
resource "sluice_rollout" "candidate" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  canary               = { steps = [{ traffic = 10 }, { traffic = 50 }, { traffic = 100 }] }
  metrics = [{
    name             = "router_latency"
    stat             = "PERCENTILE"
    percentile       = 95
    window           = "300s"
    regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 25 }
  }]
}
`
	emptyBase = `
terraform {
  required_providers {
    empty = { source = "sluice-dev/empty" }
  }
}
resource "empty_thing" "chat" {
  name = "%s"
}
resource "empty_thing" "stable" {
  name = empty_thing.chat.id
}
resource "empty_thing" "candidate" {
  name = empty_thing.chat.id
}
`
	emptyChange = `
resource "empty_thing" "rollout" {
  name = empty_thing.stable.id
}
`
)

// workspace is a folder in which a plan is timed.
type workspace struct {
	dir, terraform string
	env            []string
	took           []float64 // s
}

// plan times real plans with the provider beside one that does nothing.
func (b *bench) plan(ctx context.Context) error {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		fmt.Println("\nPlans are left out:", err)
		return nil
	}
	e, err := b.startEngine(ctx, "plan", simulatedConfig)
	if err != nil {
		return err
	}
	defer e.stop()
	env, err := b.mirror(e)
	if err != nil {
		return err
	}
	fmt.Println("\nWall time of a real terraform plan, beside a provider that does nothing with as many resources")
	t := newTable("", "sluice s", "empty s", "×empty", "added ms", fmt.Sprintf("(medians of %d interleaved plans)", b.size.plans))
	for _, kind := range []struct{ name, label string }{
		{"fresh", "an endpoint, two deployments and a rollout, all to create"},
		{"change", "the rollout added to what stands (three refreshed by the engine)"},
	} {
		spaces := [2]*workspace{}
		for i, text := range [2][2]string{{sluiceBase, sluiceChange}, {emptyBase, emptyChange}} {
			w := &workspace{dir: filepath.Join(b.dir, fmt.Sprintf("plan-%s-%d", kind.name, i)), terraform: terraform, env: env}
			if err := w.prepare(ctx, fmt.Sprintf(text[0], "chat-"+kind.name), text[1], kind.name == "change"); err != nil {
				return err
			}
			spaces[i] = w
		}
		for range b.size.plans {
			for _, w := range spaces {
				if err := w.time(ctx); err != nil {
					return err
				}
			}
		}
		own, empty := spaces[0].took, spaces[1].took
		t.row(kind.label, number("%.2f", median(own)), number("%.2f", median(empty)),
			number("%.2f", median(ratios(own, empty))), number("%.0f", 1e3*(median(own)-median(empty))))
	}
	t.print()
	return nil
}

// prepare initialises the folder, and applies all but the change where that is to
// stand already.
func (w *workspace) prepare(ctx context.Context, base, change string, stands bool) error {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "main.tf"), []byte(base), 0o600); err != nil {
		return err
	}
	if err := w.run(ctx, "init"); err != nil {
		return err
	}
	if stands {
		if err := w.run(ctx, "apply", "-auto-approve"); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(w.dir, "change.tf"), []byte(change), 0o600); err != nil {
		return err
	}
	return w.run(ctx, "plan") // once unmeasured, so that every file is in memory
}

func (w *workspace) time(ctx context.Context) error {
	began := time.Now()
	err := w.run(ctx, "plan")
	w.took = append(w.took, time.Since(began).Seconds())
	return err
}

func (w *workspace) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, w.terraform, append(args, "-input=false", "-no-color")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("terraform %s: %w: %s", args[0], err, out)
	}
	return nil
}

// mirror puts both providers where a company's mirror would have them, and returns
// the environment of the terraform that finds them there and nothing of the user's.
func (b *bench) mirror(e *engine) ([]string, error) {
	root := filepath.Join(b.dir, "mirror")
	for name, binary := range map[string]string{"sluice": b.sluice, "empty": filepath.Join(b.dir, "bin", "emptyprovider")} {
		dir := filepath.Join(root, "registry.terraform.io", "sluice-dev", name, "0.1.0", runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := copyFile(filepath.Join(dir, "terraform-provider-"+name+"_v0.1.0"), binary); err != nil {
			return nil, err
		}
	}
	rc := filepath.Join(b.dir, "terraformrc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", root)
	if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TF_") {
			env = append(env, entry)
		}
	}
	return append(env, "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "SLUICE_ENGINE_URL="+e.api, "SLUICE_API_KEY="+e.key), nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
