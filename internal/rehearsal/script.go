package rehearsal

import (
	"fmt"
	"strings"
)

// Script is one scenario as text: the world at its beginning, what happens to it, and,
// for one that is kept, the transcript that must come of it.
type Script struct {
	Head   string   // everything before the transcript, as it was written
	Given  []string // what stands, one fact a line
	When   []string // what happens: a moment and a command a line
	Expect []string // the transcript
}

// ParseScript reads a text with the headings given, when and then. A text without the
// last has no transcript.
func ParseScript(text string) (Script, error) {
	var s Script
	section := ""
	for i, raw := range strings.Split(text, "\n") {
		t := strings.TrimSpace(raw)
		if section != "then" {
			s.Head += raw + "\n"
		}
		switch {
		case t == "" || section != "then" && strings.HasPrefix(t, "#"):
		case t == "given" || t == "when" || t == "then":
			section = t
		case section == "given":
			s.Given = append(s.Given, t)
		case section == "when":
			s.When = append(s.When, t)
		case section == "then":
			s.Expect = append(s.Expect, strings.TrimRight(strings.TrimPrefix(raw, "  "), " "))
		default:
			return s, fmt.Errorf("line %d: %q stands before the heading given", i+1, t)
		}
	}
	if section == "" {
		return s, fmt.Errorf("the heading given is missing")
	}
	return s, nil
}

// String is the script as text, without a transcript.
func (s Script) String() string {
	return "given\n  " + strings.Join(s.Given, "\n  ") + "\nwhen\n  " + strings.Join(s.When, "\n  ") + "\n"
}
