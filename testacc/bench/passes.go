package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
)

// apart is waited before a pass that is measured: the endpoints' list serves all passes of
// one moment, and passes are seconds apart.
const apart = 2500 * time.Millisecond

// spent is what one pass cost: calls, ms of CPU and MiB that were allocated, of the
// process that reconciles. The Git server's own door is in it, its git processes are not.
type spent struct{ toGit, toEngine, writes, cpu, mebibytes []float64 }

// passKind is one kind of pass that is measured.
type passKind struct {
	name   string
	writes bool // whether it has something to write
	run    func(context.Context, *followed, *spent) error
}

// passes measures what a reconciler's pass costs, of few endpoints beside many.
func (b *bench) passes(ctx context.Context) error {
	if !hasGit() {
		fmt.Println("\ngit is not installed: the passes are left out")
		return nil
	}
	kinds := b.passKinds()
	seen := make([][]spent, len(kinds)) // by kind, then by number of endpoints
	for _, n := range b.size.followed {
		all, err := b.passesOf(ctx, n, kinds)
		if err != nil {
			return fmt.Errorf("%d endpoints: %w", n, err)
		}
		for i := range kinds {
			seen[i] = append(seen[i], all[i])
		}
	}
	fmt.Printf("\nOne pass of a reconciler over one repository, in stacks of %d endpoints with a deployment each (medians of %d passes; × beside the fewest endpoints)\n", perStack, b.size.passes)
	t := newTable("", "calls to Git", "calls to the engine", "×", "of them writes", "CPU ms", "×", "MiB allocated", "×")
	for i, kind := range kinds {
		for k, n := range b.size.followed {
			s, few := seen[i][k], seen[i][0]
			times := func(figure func(spent) []float64) string {
				return number("%.2f", median(figure(s))/median(figure(few)))
			}
			t.row(fmt.Sprintf("%s, %d endpoint(s)", kind.name, n), number("%.0f", median(s.toGit)),
				number("%.0f", median(s.toEngine)), times(func(s spent) []float64 { return s.toEngine }), number("%.0f", median(s.writes)),
				number("%.1f", median(s.cpu)), times(func(s spent) []float64 { return s.cpu }),
				number("%.2f", median(s.mebibytes)), times(func(s spent) []float64 { return s.mebibytes }))
		}
	}
	t.print()
	return nil
}

// passKinds are in the order in which they run.
func (b *bench) passKinds() []passKind {
	repeatedly := func(ctx context.Context, w *followed, one func(*reconciler.Reconciler) error) error {
		r, err := w.begin(ctx)
		if err != nil {
			return err
		}
		for range b.size.passes {
			if err = errors.Join(w.settle(ctx, r), pause(ctx, apart), one(r)); err != nil {
				break
			}
		}
		return errors.Join(err, end(ctx, r))
	}
	return []passKind{
		{"at rest", false, func(ctx context.Context, w *followed, s *spent) error {
			return repeatedly(ctx, w, func(r *reconciler.Reconciler) error { return w.measure(s, func() error { return r.Once(ctx) }) })
		}},
		{"one endpoint changed", true, func(ctx context.Context, w *followed, s *spent) error {
			return repeatedly(ctx, w, func(r *reconciler.Reconciler) error {
				return errors.Join(w.commit(ctx, len(w.stacks())/2), w.measure(s, func() error { return r.Once(ctx) }))
			})
		}},
		{"first after a restart", false, func(ctx context.Context, w *followed, s *spent) error {
			if err := repeatedly(ctx, w, func(*reconciler.Reconciler) error { return nil }); err != nil {
				return err
			}
			for range b.size.passes {
				var r *reconciler.Reconciler
				err := w.measure(s, func() (err error) {
					if r, err = w.begin(ctx); err != nil {
						return err
					}
					return r.Once(ctx)
				})
				if r != nil {
					err = errors.Join(err, end(ctx, r))
				}
				if err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

// passesOf measures all kinds with so many endpoints.
func (b *bench) passesOf(ctx context.Context, n int, kinds []passKind) ([]spent, error) {
	w, stop, err := b.follow(ctx, fmt.Sprintf("passes-%d", n), n)
	if err != nil {
		return nil, err
	}
	defer stop()
	all := make([]spent, len(kinds))
	for i, kind := range kinds {
		if err := kind.run(ctx, w, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		for _, writes := range all[i].writes {
			if kind.writes != (writes > 0) {
				return nil, fmt.Errorf("%s: a pass wrote %.0f times", kind.name, writes)
			}
		}
	}
	return all, nil
}

// measure adds what a pass cost.
func (w *followed) measure(to *spent, pass func() error) error {
	runtime.GC() // what others have left is not counted here
	git, engine, writes := w.toGit.Load(), w.toEngine.Load(), w.writes.Load()
	ran, allocated, err := used()
	if err != nil {
		return err
	}
	if err := pass(); err != nil {
		return err
	}
	ranThen, allocatedThen, err := used()
	if err != nil {
		return err
	}
	to.toGit = append(to.toGit, float64(w.toGit.Load()-git))
	to.toEngine = append(to.toEngine, float64(w.toEngine.Load()-engine))
	to.writes = append(to.writes, float64(w.writes.Load()-writes))
	to.cpu = append(to.cpu, ms(ranThen-ran))
	to.mebibytes = append(to.mebibytes, float64(allocatedThen-allocated)/(1<<20))
	return nil
}

// used is the CPU time that this process has run and the bytes that it has allocated.
func used() (time.Duration, uint64, error) {
	var ran syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ran); err != nil {
		return 0, 0, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return time.Duration(ran.Utime.Nano() + ran.Stime.Nano()), memory.TotalAlloc, nil
}
