package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"
)

var selfPID = os.Getpid()

// sample is one measurement of one target.
type sample struct {
	load
	cpu   float64 // µs of the target a request; NaN when unknown
	share float64 // of the candidate, 0 to 1; NaN for the upstream itself
}

// samples are those of one target, one a repeat.
type samples []sample

func (s samples) of(figure func(sample) float64) []float64 {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = figure(s[i])
	}
	return out
}

func perSecond(s sample) float64 { return s.perSecond() }
func p50(s sample) float64       { return s.p50 }
func p99(s sample) float64       { return s.p99 }
func cpu(s sample) float64       { return s.cpu }
func share(s sample) float64     { return s.share }
func client(s sample) float64    { return float64(s.load.cpu.Microseconds()) / float64(s.requests) }

// gateway measures the real engine's gateway beside its upstream and nginx.
func (b *bench) gateway(ctx context.Context) error {
	e, u, err := b.startGateway(ctx)
	if err != nil {
		return err
	}
	defer e.stop()
	targets := []target{{name: "upstream directly", address: u.stable}}
	nginx, t, err := b.startNginx(ctx, u)
	if err != nil {
		fmt.Println("the row of nginx is left out:", err)
	} else {
		defer nginx.stop()
		targets = append(targets, t)
	}
	targets = append(targets, target{name: "sluice gateway", address: hostPort(e.gateway), pids: func() []int { return []int{e.pid()} }, splits: true})

	fmt.Printf("\nThe gateway of a running canary at 10 %% (sticky split, body rewritten, metered), beside its upstream and nginx.\n")
	fmt.Printf("Load by %s: POST of %d bytes, answer of 1 KB after 0 ms, another user each time.\n", b.load, len(chatBody()))
	for _, at := range []struct {
		connections, repeats int
		d                    time.Duration
	}{{64, b.size.repeats, b.size.busy}, {1, b.size.singles, b.size.single}} {
		seen, err := b.interleave(ctx, u, targets, at.repeats, at.connections, at.d)
		if err != nil {
			return err
		}
		fmt.Printf("\n%d connection(s), medians of %d interleaved repeats of %s; ratios within a repeat\n", at.connections, at.repeats, at.d)
		report(targets, seen)
		if at.connections == 1 {
			reportAdded(targets, seen)
		} else {
			reportLines(targets, seen)
		}
	}
	return b.streaming(ctx, targets)
}

// interleave measures every target in turn, in another order each repeat.
func (b *bench) interleave(ctx context.Context, u upstreams, targets []target, repeats, connections int, d time.Duration) ([]samples, error) {
	out := make([]samples, len(targets))
	for repeat := range repeats {
		for k := range targets {
			i := (k + repeat) % len(targets)
			s, err := b.measure(ctx, u, targets[i], connections, d, repeat)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", targets[i].name, err)
			}
			out[i] = append(out[i], s)
		}
	}
	return out, nil
}

func (b *bench) measure(ctx context.Context, u upstreams, t target, connections int, d time.Duration, round int) (sample, error) {
	if _, err := b.load.send(ctx, t.address, connections, b.size.warm, 9, b.dir); err != nil {
		return sample{}, err
	}
	stable, candidate, err := u.counts(ctx)
	if err != nil {
		return sample{}, err
	}
	before, known := time.Duration(0), false
	if t.pids != nil {
		before, known = cpuOf(t.pids()...)
	}
	l, err := b.load.send(ctx, t.address, connections, d, round, b.dir)
	if err != nil {
		return sample{}, err
	}
	s := sample{load: l, cpu: math.NaN(), share: math.NaN()}
	if known {
		after, _ := cpuOf(t.pids()...)
		s.cpu = float64((after - before).Nanoseconds()) / 1e3 / float64(l.requests)
	}
	stableNow, candidateNow, err := u.counts(ctx)
	if err != nil {
		return sample{}, err
	}
	stable, candidate = stableNow-stable, candidateNow-candidate
	if t.splits {
		s.share = float64(candidate) / float64(stable+candidate)
	}
	// A leftover of somebody else's that answers in a target's place would be fast,
	// and wrong: what was sent must have come out at the mocks. Those in flight when the
	// warming and when the measurement ended are not in the client's count.
	if came := stable + candidate; came < l.requests || came > l.requests+4*int64(connections) {
		return sample{}, fmt.Errorf("%d requests were answered, but %d came out at the upstreams", l.requests, came)
	}
	if l.failed > 0 {
		return sample{}, fmt.Errorf("%d of %d requests failed", l.failed, l.requests)
	}
	return s, nil
}
