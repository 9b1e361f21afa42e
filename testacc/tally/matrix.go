package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

var (
	row   = regexp.MustCompile(`(?m)^\| (.+) \| (.*Test.*) \|$`)
	named = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
)

// matrix prints the behaviours of a page with the result of each of their tests; one
// that this run did not have is told as such.
func (t *tally) matrix(page string) error {
	text, err := os.ReadFile(page) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	fmt.Printf("\nbehaviours and their tests (%s):\n", page)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		fmt.Printf("  %s\n", strings.ReplaceAll(m[1], "`", ""))
		for _, n := range named.FindAllStringSubmatch(m[2], -1) {
			result := t.results[n[1]]
			if result == "" {
				result = "not in this run"
			}
			fmt.Printf("    %-15s  %s\n", result, n[1])
		}
	}
	return nil
}
