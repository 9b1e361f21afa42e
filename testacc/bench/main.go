// Command bench measures Sluice beside what it is compared with, in one run on one
// machine: the gateway beside its upstream and nginx, a plan beside one by a provider
// that does nothing, plans of up to a thousand rollouts, the time from a cancel to the frozen split, reading
// a large repository beside the git command, a reconciler's passes over up to a thousand
// endpoints, the time from a push to the engine, and ten thousand rollouts that wait at
// once beside one thousand. Run it with
// "make bench". Repeats are interleaved and ratios are taken within a repeat, so that
// what else the machine does falls on all sides alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// bench is what the sections share.
type bench struct {
	dir    string // scratch folder; bin/ in it holds the built parts
	sluice string // the binary under test
	load   loader
	size   size
}

// size says how much is measured.
type size struct {
	repeats int           // of the interleaved round at 64 connections, and of the streams
	singles int           // of the one at one connection, whose small differences need more
	busy    time.Duration // of one measurement at 64 connections
	single  time.Duration // of one measurement at one connection
	warm    time.Duration // before each
	streams int           // at once in the streaming measurement
	plans   int           // of each kind and provider
	crowds  []int         // numbers of rollouts of one endpoint, in plans of many
	cancels int

	commits int // of the repository that is fetched
	files   int // in it
	fetches int // repeats

	followed []int // numbers of endpoints that a reconciler follows
	passes   int   // of each kind
	pushes   int   // woken by a webhook, and by polling

	scales   []int         // numbers of rollouts that wait at once
	wait     time.Duration // how long they are watched
	controls int           // pauses and resumes among them
}

var (
	full  = size{repeats: 3, singles: 5, busy: 4 * time.Second, single: 1500 * time.Millisecond, warm: 500 * time.Millisecond, streams: 4, plans: 7, crowds: []int{1, 100, 1000}, cancels: 30, commits: 5000, files: 10000, fetches: 5, followed: []int{1, 100, 1000}, passes: 5, pushes: 20, scales: []int{1000, 10000}, wait: 30 * time.Second, controls: 300}
	short = size{repeats: 1, singles: 1, busy: 1500 * time.Millisecond, single: time.Second, warm: 300 * time.Millisecond, streams: 2, plans: 2, crowds: []int{1, 100}, cancels: 6, commits: 300, files: 1000, fetches: 2, followed: []int{1, 20}, passes: 2, pushes: 3, scales: []int{200, 1000}, wait: 10 * time.Second, controls: 30}
)

func main() {
	var scales []int
	dir := flag.String("dir", "", "scratch folder with bin/mock and bin/emptyprovider")
	sluice := flag.String("sluice", "", "the sluice binary to measure")
	brief := flag.Bool("short", false, "few and short repeats")
	only := flag.String("only", "", "one section: gateway, plan, plans, cancel, git, passes, push or scale")
	flag.Func("scale", "a number of rollouts that wait at once; give it again for another", func(text string) error {
		n, err := strconv.Atoi(text)
		scales = append(scales, n)
		return err
	})
	flag.Parse()
	b := &bench{dir: *dir, sluice: *sluice, load: newLoader(), size: full}
	if *brief {
		b.size = short
	}
	if len(scales) > 0 {
		b.size.scales = scales
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench failed:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, only string) error {
	began := time.Now()
	fmt.Println(machine())
	for _, section := range []struct {
		name string
		run  func(context.Context) error
	}{{"gateway", b.gateway}, {"plan", b.plan}, {"plans", b.plans}, {"cancel", b.cancel}, {"git", b.git}, {"passes", b.passes}, {"push", b.push}, {"scale", b.scale}} {
		if only != "" && only != section.name {
			continue
		}
		if err := section.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
	}
	fmt.Printf("\nmeasured in %s; load average now %s\n", time.Since(began).Round(time.Second), loadAverage())
	return nil
}
