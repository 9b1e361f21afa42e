package rehearsal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// lineError is a line of a script that cannot be read.
type lineError struct {
	text string // of the line
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("%q: %s", e.text, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// The first words of what a script may say.
const (
	factWords    = "source target other split weights endpoints copies poll gateway timings rollout gate"
	commandWords = "start pause resume promote cancel delete stale again back split kill fail stick heal loop cold autoscale bound free unlimited " +
		"traffic measure mute unmute meter looks shares routers store fleet notices clock lapse billing restart freeze second thaw at mend"
)

// placed names the line of a text that an error is about, and what could stand there.
func placed(text string, err error) error {
	var at *lineError
	if !errors.As(err, &at) {
		return err
	}
	heading := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "given" || line == "when" || line == "then" {
			heading = line
		}
		if line == at.text && heading != "then" {
			return fmt.Errorf("line %d: %w; %s", i+1, err, hint(heading))
		}
	}
	return err
}

// hint lists the words that a heading knows.
func hint(heading string) string {
	commands := strings.Join(sortedWords(commandWords), ", ")
	if heading == "given" {
		return "given has a fact and a colon (" + strings.Join(sortedWords(factWords), ", ") + ") or a command with a colon (" + commands + ")"
	}
	return "when has a moment (+1:30, or \"in SOAKING of step 2 after 10s:\") and a command (" + commands + ")"
}

func sortedWords(text string) []string {
	words := strings.Fields(text)
	slices.Sort(words)
	return words
}
