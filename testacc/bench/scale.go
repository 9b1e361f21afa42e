package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
)

// scaleConfig has the published timings, so that rollouts wait as they do in earnest,
// and one model server for all replicas of a config, so that the engine is measured
// and not its make-believe fleet.
const scaleConfig = `
project: {id: proj_bench, slug: bench}
fleet: {driver: simulated, servers: config}
hardware:
  - {id: 1xbench, gpu_type: none}
configs:
  - {id: cr_stable, models: [bench/stable], hardware: 1xbench, simulated: {cold_start: 50ms, latency: 0s}}
  - {id: cr_candidate, models: [bench/candidate], hardware: 1xbench, simulated: {cold_start: 50ms, latency: 0s}}
`

// scaling is what one number of rollouts showed.
type scaling struct {
	rollouts   int
	created    time.Duration // over HTTP, until all soak
	bytes      float64       // resident memory that each waiting rollout added
	goroutines float64       // of the process while all wait
	cpu        float64       // of one core while all wait, percent
	turns      float64       // looks at a rollout a second while all wait
	commits    float64       // a second while all wait
	creating   float64       // commits a second while they were created
	shared     float64       // commits in one transaction then
	answer     []float64     // ms from a control's request to its answer, which is sent once it is stored
	paused     []float64     // ms from a pause's request to reading PAUSED
	healthy    float64       // s from the restart after kill -9 to the first healthy answer
	takenUp    float64       // s to every rollout looked at again
	rewritten  float64       // commits by then
}

// scale measures an engine with many rollouts that wait, few beside many.
func (b *bench) scale(ctx context.Context) error {
	var seen []scaling
	for _, n := range b.size.scales {
		s, err := b.scaleTo(ctx, n)
		if err != nil {
			return fmt.Errorf("%d rollouts: %w", n, err)
		}
		seen = append(seen, s)
	}
	fmt.Printf("\nRollouts that wait at once, one an endpoint, in one engine on SQLite (soaking at 10 %%; %d controls each at random)\n", b.size.controls)
	heads, last := []string{""}, len(seen)-1
	for _, s := range seen {
		heads = append(heads, strconv.Itoa(s.rollouts))
	}
	t := newTable(append(heads, "ratio")...)
	for _, row := range scaleRows() {
		cells := []string{row.name}
		for _, s := range seen {
			cells = append(cells, number(row.format, row.figure(s)))
		}
		t.row(append(cells, number("%.2f", row.figure(seen[last])/row.figure(seen[0])))...)
	}
	t.print()
	return nil
}

type scaleRow struct {
	name, format string
	figure       func(scaling) float64
}

func scaleRows() []scaleRow {
	at := func(of func(scaling) []float64, q float64) func(scaling) float64 {
		return func(s scaling) float64 { return quantile(of(s), q) }
	}
	answer, paused := func(s scaling) []float64 { return s.answer }, func(s scaling) []float64 { return s.paused }
	return []scaleRow{
		{"memory of a waiting rollout, KiB", "%.1f", func(s scaling) float64 { return s.bytes / 1024 }},
		{"goroutines of the engine", "%.0f", func(s scaling) float64 { return s.goroutines }},
		{"CPU while all wait, % of one core", "%.1f", func(s scaling) float64 { return s.cpu }},
		{"looks at a rollout a second while all wait", "%.0f", func(s scaling) float64 { return s.turns }},
		{"writes a second while all wait", "%.1f", func(s scaling) float64 { return s.commits }},
		{"control to its stored effect, p50 ms", "%.1f", at(answer, 0.5)},
		{"control to its stored effect, p99 ms", "%.1f", at(answer, 0.99)},
		{"pause to PAUSED, p50 ms", "%.1f", at(paused, 0.5)},
		{"pause to PAUSED, p99 ms", "%.1f", at(paused, 0.99)},
		{"after kill -9: healthy, s", "%.2f", func(s scaling) float64 { return s.healthy }},
		{"after kill -9: all taken up, s", "%.2f", func(s scaling) float64 { return s.takenUp }},
		{"writes until all are taken up", "%.0f", func(s scaling) float64 { return s.rewritten }},
		{"created over HTTP until all soak, s", "%.0f", func(s scaling) float64 { return s.created.Seconds() }},
		{"writes a second while they are created", "%.0f", func(s scaling) float64 { return s.creating }},
		{"writes in one transaction then", "%.2f", func(s scaling) float64 { return s.shared }},
	}
}

func (b *bench) scaleTo(ctx context.Context, n int) (scaling, error) {
	s := scaling{rollouts: n}
	e, err := b.startEngine(ctx, fmt.Sprintf("scale-%d", n), scaleConfig)
	if err != nil {
		return s, err
	}
	defer func() { e.stop() }() // which may be another process by then
	if e.client, err = manyAtOnce(e); err != nil {
		return s, err
	}
	empty, err := residentOf(e.pid())
	if err != nil {
		return s, err
	}
	all, err := e.createMany(ctx, n, &s)
	if err != nil {
		return s, err
	}
	if err := e.whileAllWait(ctx, b.size.wait, &s); err != nil {
		return s, err
	}
	full, err := residentOf(e.pid())
	if err != nil {
		return s, err
	}
	s.bytes = (full - empty) / float64(n)
	if err := e.controlSome(ctx, all, b.size.controls, &s); err != nil {
		return s, err
	}
	e, err = b.killAndRestart(ctx, e, n, &s)
	return s, err
}

// atOnce is how many clients create.
const atOnce = 16

// manyAtOnce is a client that keeps its connections: the usual one keeps two.
func manyAtOnce(e *engine) (*engineclient.Client, error) {
	return engineclient.New(engineclient.Config{BaseURL: e.api, APIKey: e.key, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * atOnce}})
}

// createMany makes so many endpoints with a rollout each and returns once all soak.
func (e *engine) createMany(ctx context.Context, n int, s *scaling) ([]api.Rollout, error) {
	began := time.Now()
	before, err := e.figures(ctx)
	if err != nil {
		return nil, err
	}
	hour := api.Duration(6 * time.Hour)
	all := make([]api.Rollout, n)
	err = eachOf(n, func(i int) error {
		var err error
		all[i], err = e.begin(ctx, fmt.Sprintf("chat-%d", i), api.Canary{Steps: []api.CanaryStep{{Traffic: 10}, {Traffic: 100}}, StepInterval: &hour})
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := e.figures(ctx)
	if err != nil {
		return nil, err
	}
	s.creating = (after["sluice_store_commits_total"] - before["sluice_store_commits_total"]) / time.Since(began).Seconds()
	s.shared = (after["sluice_store_commits_total"] - before["sluice_store_commits_total"]) / (after["sluice_store_transactions_total"] - before["sluice_store_transactions_total"])
	err = eachOf(n, func(i int) error {
		return e.awaitRollout(ctx, all[i], time.Second, func(r api.Rollout) bool { return r.Sluice != nil && r.Sluice.Phase == "SOAKING" })
	})
	s.created = time.Since(began)
	return all, err
}

// eachOf calls do for 0 to n-1 from a few goroutines and returns the first error.
func eachOf(n int, do func(i int) error) error {
	next := make(chan int)
	errs := make(chan error, atOnce)
	for range atOnce {
		go func() {
			var first error
			for i := range next {
				if first == nil {
					first = do(i)
				}
			}
			errs <- first
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	var all []error
	for range atOnce {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// awaitRollout reads a rollout until it is as it should be, for two minutes at most.
func (e *engine) awaitRollout(ctx context.Context, r api.Rollout, every time.Duration, is func(api.Rollout) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		now, err := e.client.GetRollout(ctx, r.EndpointID, r.ID)
		if err != nil {
			return err
		}
		if is(now) {
			return nil
		}
		if err := pause(ctx, every); err != nil {
			return fmt.Errorf("rollout %s is still %s: %w", r.ID, now.State, err)
		}
	}
}

// whileAllWait measures what the engine does when nothing happens.
func (e *engine) whileAllWait(ctx context.Context, d time.Duration, s *scaling) error {
	if err := pause(ctx, d/4); err != nil { // for the last of the creation to be over
		return err
	}
	before, err := e.figures(ctx)
	if err != nil {
		return err
	}
	ran, _ := cpuOf(e.pid())
	began := time.Now()
	if err := pause(ctx, d); err != nil {
		return err
	}
	ranThen, ok := cpuOf(e.pid())
	took := time.Since(began)
	if !ok {
		return errors.New("this system does not tell what a process has run")
	}
	after, err := e.figures(ctx)
	if err != nil {
		return err
	}
	s.cpu = 100 * float64(ranThen-ran) / float64(took)
	s.goroutines = after["go_goroutines"]
	s.turns = (after["sluice_rollout_turns_total"] - before["sluice_rollout_turns_total"]) / took.Seconds()
	s.commits = (after["sluice_store_commits_total"] - before["sluice_store_commits_total"]) / took.Seconds()
	return nil
}

// controlSome pauses and resumes rollouts at random while the others wait.
func (e *engine) controlSome(ctx context.Context, all []api.Rollout, controls int, s *scaling) error {
	for range controls {
		r := all[rand.IntN(len(all))] //nolint:gosec // a draw, not a secret
		sent := time.Now()
		if _, err := e.client.PauseRollout(ctx, r.EndpointID, r.ID, api.Control{Reason: "benchmark"}); err != nil {
			return err
		}
		s.answer = append(s.answer, ms(time.Since(sent)))
		if err := e.awaitRollout(ctx, r, time.Millisecond, func(r api.Rollout) bool { return r.State == engineclient.StatePaused }); err != nil {
			return err
		}
		s.paused = append(s.paused, ms(time.Since(sent)))
		sent = time.Now()
		if _, err := e.client.ResumeRollout(ctx, r.EndpointID, r.ID, api.Control{Reason: "benchmark"}); err != nil {
			return err
		}
		s.answer = append(s.answer, ms(time.Since(sent)))
	}
	return nil
}

// killAndRestart kills the engine with SIGKILL and times how the next one comes back.
func (b *bench) killAndRestart(ctx context.Context, e *engine, n int, s *scaling) (*engine, error) {
	_ = e.cmd.Process.Signal(syscall.SIGKILL)
	<-e.done
	dir := filepath.Join(b.dir, fmt.Sprintf("scale-%d", n))
	began := time.Now()
	c, err := spawn(ctx, filepath.Join(dir, "again.log"), b.sluice, "serve", "--log-level", "warn", "--data", filepath.Join(dir, "data"),
		"--listen", hostPort(e.api), "--gateway", hostPort(e.gateway), "--config", filepath.Join(dir, "engine.yaml"))
	if err != nil {
		return e, err
	}
	next := &engine{child: c, api: e.api, gateway: e.gateway, key: e.key, client: e.client}
	err = next.polled(ctx, func() bool { text, err := get(ctx, e.api+"/readyz"); return err == nil && text != "" })
	s.healthy = time.Since(began).Seconds()
	if err != nil {
		return next, err
	}
	var now map[string]float64
	err = next.polled(ctx, func() bool {
		now, err = next.figures(ctx)
		return err == nil && now["sluice_rollout_turns_total"] >= float64(n) && now["sluice_rollouts_not_taken_up"] == 0
	})
	s.takenUp, s.rewritten = time.Since(began).Seconds(), now["sluice_store_commits_total"]
	return next, err
}

// polled asks every 5 ms until the answer is yes, for three minutes at most.
func (e *engine) polled(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for !is() {
		select {
		case <-e.done:
			return fmt.Errorf("the engine ended: %s", e.said())
		default:
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%w: %s", err, e.said())
		}
	}
	return nil
}

// figures reads the engine's unlabeled metrics.
func (e *engine) figures(ctx context.Context) (map[string]float64, error) {
	text, err := get(ctx, e.api+"/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = v
		}
	}
	return out, nil
}

// residentOf is a process' resident memory in bytes.
func residentOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("unreadable: %q", text)
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err
}
