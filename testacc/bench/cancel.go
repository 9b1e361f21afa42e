package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/internal/gateway"
)

// publishedFreeze is what the hosted platform names for the time from a cancel to
// the frozen split.
const publishedFreeze = 200.0 // ms

// freeze is one canceled rollout. Times are ms from sending the cancel.
type freeze struct {
	phase    string // in which the cancel met it
	sent     time.Time
	accepted float64 // the cancel's own answer
	router   float64 // first answer of the gateway by the route that stays
	canceled float64 // GET says CANCELED
}

// cancel measures from a cancel's request to the frozen split.
func (b *bench) cancel(ctx context.Context) error {
	e, err := b.startEngine(ctx, "cancel", simulatedConfig)
	if err != nil {
		return err
	}
	defer e.stop()
	whole, err := e.uncanceled(ctx)
	if err != nil {
		return err
	}
	var seen []freeze
	for i := 0; len(seen) < b.size.cancels; i++ {
		f, met, err := e.freeze(ctx, fmt.Sprintf("chat-%d", i), time.Duration(rand.Float64()*float64(whole))) //nolint:gosec // a draw, not a secret
		if err != nil {
			return err
		}
		if met {
			seen = append(seen, f)
		}
	}
	phases := map[string]int{}
	for _, f := range seen {
		phases[f.phase]++
	}
	var met []string
	for _, name := range slices.Sorted(maps.Keys(phases)) {
		met = append(met, fmt.Sprintf("%s %d", strings.ToLower(name), phases[name]))
	}
	fmt.Printf("\nFrom a cancel's request to the frozen split: %d rollouts canceled at random, polled every 1 ms over HTTP\n", len(seen))
	fmt.Printf("  met in: %s; every split was the same 300 ms later\n", strings.Join(met, ", "))
	t := newTable("", "p50 ms", "p99 ms", "max ms", "max × the published 200 ms")
	for _, row := range []struct {
		name   string
		figure func(freeze) float64
	}{
		{"the cancel's own answer", func(f freeze) float64 { return f.accepted }},
		{"the gateway answers by the route that stays", func(f freeze) float64 { return f.router }},
		{"the rollout reads CANCELED", func(f freeze) float64 { return f.canceled }},
	} {
		var all []float64
		for _, f := range seen {
			all = append(all, row.figure(f))
		}
		most := slices.Max(all)
		t.row(row.name, number("%.1f", median(all)), number("%.1f", quantile(all, 0.99)), number("%.1f", most), number("%.3f", most/publishedFreeze))
	}
	t.print()
	return nil
}

// ladder is long enough for every phase to be met.
func ladder() api.Canary {
	interval := api.Duration(150 * time.Millisecond)
	return api.Canary{Steps: []api.CanaryStep{{Traffic: 10}, {Traffic: 40}, {Traffic: 70}, {Traffic: 100}}, StepInterval: &interval}
}

// uncanceled is how long a rollout takes that nobody cancels.
func (e *engine) uncanceled(ctx context.Context) (time.Duration, error) {
	r, err := e.begin(ctx, "whole", ladder())
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = e.await(ctx, "completed rollout", func() bool {
		now, err := e.client.GetRollout(ctx, r.EndpointID, r.ID)
		return err == nil && now.State == engineclient.StateCompleted
	})
	return time.Since(began), err
}

// freeze cancels one rollout after a while. It reports false when the rollout was
// over before.
func (e *engine) freeze(ctx context.Context, name string, after time.Duration) (freeze, bool, error) {
	p, err := e.makePair(ctx, name)
	if err != nil {
		return freeze{}, false, err
	}
	r, err := e.canary(ctx, p, ladder())
	if err != nil {
		return freeze{}, false, err
	}
	if err := pause(ctx, after); err != nil {
		return freeze{}, false, err
	}
	watch := e.watchRoute(ctx, p.name)
	f, over, err := e.cancelAndPoll(ctx, r)
	if err == nil && !over {
		err = e.confirm(ctx, p, watch, &f)
	}
	return f, !over, errors.Join(err, watch.stop())
}

// cancelAndPoll sends the cancel and reads the rollout every millisecond until it is
// CANCELED. over tells that it was over before.
func (e *engine) cancelAndPoll(ctx context.Context, r api.Rollout) (f freeze, over bool, err error) {
	before, err := e.client.GetRollout(ctx, r.EndpointID, r.ID)
	if err != nil {
		return f, false, err
	}
	if engineclient.Terminal(before.State) {
		return f, true, nil
	}
	if before.Sluice != nil {
		f.phase = before.Sluice.Phase
	}
	f.sent = time.Now()
	if _, err := e.client.CancelRollout(ctx, r.EndpointID, r.ID, api.Control{Reason: "benchmark"}); err != nil {
		now, readErr := e.client.GetRollout(ctx, r.EndpointID, r.ID)
		if readErr == nil && now.State == engineclient.StateCompleted {
			return f, true, nil
		}
		return f, false, err
	}
	f.accepted = ms(time.Since(f.sent))
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for {
		now, err := e.client.GetRollout(ctx, r.EndpointID, r.ID)
		if err != nil {
			return f, false, err
		}
		if now.State == engineclient.StateCanceled {
			f.canceled = ms(time.Since(f.sent))
			return f, false, nil
		}
		select {
		case <-ctx.Done():
			return f, false, ctx.Err()
		case <-every.C:
		}
	}
}

// confirm finds when the gateway took the route that it serves now that the rollout
// is over, and checks that the split stays.
func (e *engine) confirm(ctx context.Context, p pair, watch *routeWatch, f *freeze) error {
	frozen, err := e.client.GetEndpoint(ctx, p.endpoint)
	if err != nil {
		return err
	}
	route, err := e.ask(ctx, p.name)
	if err != nil {
		return err
	}
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	later, err := e.client.GetEndpoint(ctx, p.endpoint)
	if err != nil {
		return err
	}
	if frozen.ActiveRolloutID != "" || !slices.Equal(frozen.TrafficSplit, later.TrafficSplit) {
		return fmt.Errorf("the split of %s was not frozen: %v, then %v", p.name, frozen.TrafficSplit, later.TrafficSplit)
	}
	at, ok := watch.first(route)
	if !ok {
		return fmt.Errorf("the watch of %s missed route %d", p.name, route)
	}
	f.router = ms(at.Sub(f.sent))
	return nil
}

// routeWatch asks the gateway every millisecond by which route it answers.
type routeWatch struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	seen   map[uint64]time.Time // when a route's first answer came
	err    error
}

func (e *engine) watchRoute(ctx context.Context, model string) *routeWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &routeWatch{cancel: cancel, done: make(chan struct{}), seen: map[uint64]time.Time{}}
	go func() {
		defer close(w.done)
		every := time.NewTicker(time.Millisecond)
		defer every.Stop()
		for {
			route, err := e.ask(ctx, model)
			if ctx.Err() != nil {
				return
			}
			w.note(route, err)
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
		}
	}()
	return w
}

func (w *routeWatch) note(route uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return
	}
	if _, ok := w.seen[route]; !ok {
		w.seen[route] = time.Now()
	}
}

// first is when the first answer by a route came.
func (w *routeWatch) first(route uint64) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.seen[route]
	return at, ok
}

// stop ends the watch and returns the last request that failed, if one did.
func (w *routeWatch) stop() error {
	w.cancel()
	<-w.done
	return w.err
}

// ask sends one request through the gateway and returns the route's generation.
func (e *engine) ask(ctx context.Context, model string) (uint64, error) {
	body := strings.NewReader(`{"model":"` + model + `","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.gateway+"/v1/chat/completions", body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the gateway answered %s: %s", resp.Status, text)
	}
	return strconv.ParseUint(resp.Header.Get(gateway.HeaderGeneration), 10, 64)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// pause waits: a rollout is to be met at a moment that no event marks.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
