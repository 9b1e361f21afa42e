// Command tally reads the JSON of "go test" and prints what a person wants of it:
// the output of what failed, a line a package, why something was skipped, the slowest
// tests, and the counts. With a page of behaviours and their tests (docs/acceptance.md)
// it prints that as a table with each test's result. It exits 1 when something failed or nothing ran.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

type test struct {
	name    string
	elapsed float64
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: tally FILE [BEHAVIOURS]")
		os.Exit(2)
	}
	ok, err := read(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// read prints the tally of a file, with the table of a page if there is one, and tells
// whether all is well.
func read(path string, pages []string) (ok bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	t := tally{output: map[string]*strings.Builder{}, results: map[string]string{}}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) == nil {
			t.add(e)
		} else {
			fmt.Println(in.Text()) // what the compiler says is not JSON
		}
	}
	for _, p := range pages {
		if err := t.matrix(p); err != nil {
			return false, err
		}
	}
	t.print()
	return t.failed == 0 && t.passed > 0, in.Err()
}

type tally struct {
	passed, failed, skipped int
	output                  map[string]*strings.Builder
	slow                    []test
	results                 map[string]string // passed, FAILED or skipped, by test
}

func (t *tally) add(e event) {
	key := e.Package + " " + e.Test
	if word, over := map[string]string{"pass": "passed", "fail": "FAILED", "skip": "skipped"}[e.Action]; over && t.results[e.Test] != "FAILED" {
		t.results[e.Test] = word
	}
	switch e.Action {
	case "output", "build-output":
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
	case "fail":
		fmt.Printf("--- FAIL %s %s\n%s", short(e.Package), e.Test, t.text(key))
		if e.Test != "" || t.failed == 0 {
			t.failed++
		}
	case "skip":
		if e.Test != "" {
			t.skipped++
			fmt.Printf("skipped  %s %s%s\n", short(e.Package), e.Test, why(t.text(key)))
		}
	case "pass":
		t.pass(e, key)
	case "build-fail":
		fmt.Printf("--- BUILD FAILED %s\n%s", e.Package, t.text(key))
		t.failed++
	}
	if e.Action != "output" && e.Action != "build-output" {
		delete(t.output, key)
	}
}

func (t *tally) pass(e event, key string) {
	if e.Test == "" {
		fmt.Printf("ok       %-40s %7.1fs\n", short(e.Package), e.Elapsed)
		return
	}
	t.passed++
	t.slow = append(t.slow, test{short(e.Package) + " " + e.Test, e.Elapsed})
	// A test that measured something says so on lines that begin with "measured".
	for _, line := range strings.Split(t.text(key), "\n") {
		if _, after, ok := strings.Cut(line, "measured: "); ok {
			fmt.Printf("measured %s: %s\n", e.Test, after)
		}
	}
}

func (t *tally) text(key string) string {
	if b := t.output[key]; b != nil {
		return b.String()
	}
	return ""
}

// why is what a skipped test said last, after the place where it said so.
func why(output string) string {
	reason := ""
	for line := range strings.Lines(output) {
		if _, said, ok := strings.Cut(line, ".go:"); ok {
			if _, said, ok = strings.Cut(said, ": "); ok {
				reason = ": " + strings.TrimSpace(said)
			}
		}
	}
	return reason
}

func (t *tally) print() {
	slices.SortFunc(t.slow, func(a, b test) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Println("\nslowest:")
	for _, s := range t.slow[:min(8, len(t.slow))] {
		fmt.Printf("  %7.1fs  %s\n", s.elapsed, s.name)
	}
	fmt.Printf("\n%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
}

func short(pkg string) string {
	return strings.TrimPrefix(pkg, "github.com/sluice-dev/terraform-provider-sluice/")
}
