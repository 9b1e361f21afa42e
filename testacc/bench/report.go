package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"text/tabwriter"
)

// table prints rows in columns.
type table struct{ w *tabwriter.Writer }

func newTable(heads ...string) table {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	t.row(heads...)
	return t
}

func (t table) row(cells ...string) { _, _ = fmt.Fprintln(t.w, "  "+strings.Join(cells, "\t")) }
func (t table) print()              { _ = t.w.Flush() }

// number writes a figure with its unit's digits, or a dash for none.
func number(format string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// base finds the targets that rows are ratios to.
func base(targets []target, seen []samples) (direct, nginx samples) {
	for i, t := range targets {
		switch {
		case t.pids == nil:
			direct = seen[i]
		case strings.HasPrefix(t.name, "nginx"):
			nginx = seen[i]
		}
	}
	return direct, nginx
}

// by is the median ratio of a figure to that of another target, a dash for none.
func by(of, to samples, figure func(sample) float64) string {
	if len(to) == 0 {
		return "–"
	}
	return number("%.2f", median(ratios(of.of(figure), to.of(figure))))
}

func report(targets []target, seen []samples) {
	direct, nginx := base(targets, seen)
	t := newTable("", "req/s", "×direct", "×nginx", "p50 ms", "×direct", "×nginx", "p99 ms", "×direct", "×nginx", "CPU µs/req", "×nginx", "share of 10 %", "client CPU µs/req")
	for i, of := range targets {
		s := seen[i]
		t.row(of.name,
			number("%.0f", median(s.of(perSecond))), by(s, direct, perSecond), by(s, nginx, perSecond),
			number("%.3f", median(s.of(p50))), by(s, direct, p50), by(s, nginx, p50),
			number("%.2f", median(s.of(p99))), by(s, direct, p99), by(s, nginx, p99),
			number("%.1f", median(s.of(cpu))), by(s, nginx, cpu),
			number("%.2f %%", 100*median(s.of(share))), number("%.1f", median(s.of(client))))
	}
	t.print()
}

// reportAdded says what each proxy adds to the median of one connection.
func reportAdded(targets []target, seen []samples) {
	direct, nginx := base(targets, seen)
	added := func(s samples) []float64 {
		out := make([]float64, len(s))
		for i := range s {
			out[i] = 1e3 * (s[i].p50 - direct[i].p50)
		}
		return out
	}
	t := newTable("", "added p50 µs", "×nginx", "aim")
	for i, of := range targets {
		if !of.splits {
			continue
		}
		ratio, aim := "–", ""
		if len(nginx) > 0 {
			ratio = number("%.2f", median(ratios(added(seen[i]), added(nginx))))
		}
		if strings.HasPrefix(of.name, "sluice") {
			aim = "at most 1.5 × nginx, never above 200 µs"
		}
		t.row(of.name, number("%.0f", median(added(seen[i]))), ratio, aim)
	}
	t.print()
}

// reportLines says how far the busy run is from what was aimed at.
func reportLines(targets []target, seen []samples) {
	_, nginx := base(targets, seen)
	for i, of := range targets {
		if !strings.HasPrefix(of.name, "sluice") {
			continue
		}
		s := seen[i]
		var n int64
		var hits float64
		for _, one := range s {
			n += one.requests
			hits += one.share * float64(one.requests)
		}
		got := hits / float64(n)
		// Users are drawn by hash, so the share is binomial; 3.29 is its 99.9 %.
		band := 3.29 * math.Sqrt(0.1*0.9/float64(n))
		fmt.Printf("  CPU per request × nginx: %s, aim at most 2.2\n", by(s, nginx, cpu))
		fmt.Printf("  share: %.3f %% of %d requests, 99.9 %% of honest draws lie in 10 %% ± %.3f\n", 100*got, n, 100*band)
	}
}
