package cli

import (
	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler"
)

// configCheck is the JSON of "sluice reconcile --check", and of a configuration that is not
// taken.
type configCheck struct {
	Config       string   `json:"config"`
	Taken        bool     `json:"taken"` // it has no mistake; warnings do not hinder
	Repositories int      `json:"repositories"`
	Stacks       int      `json:"stacks"`
	Mistakes     []remark `json:"mistakes"`
	Warnings     []remark `json:"warnings"`
}

// remark is one mistake or warning. What comes of the command line has no place.
type remark struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // 1-based, as column
	Column  int    `json:"column,omitempty"`
	Summary string `json:"summary"`
	Detail  string `json:"detail,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

func checkOf(f reconcileFlags, c reconciler.Config, found declaration.Diagnostics) configCheck {
	out := configCheck{
		Config: orFlags(f.config), Taken: !found.HasErrors(), Repositories: len(c.Repositories), Stacks: stacksOf(c),
		Mistakes: []remark{}, Warnings: []remark{},
	}
	for _, d := range found {
		r := remark{File: d.Range.Filename, Line: d.Range.Start.Line, Column: d.Range.Start.Column, Summary: d.Summary, Detail: d.Detail, Hint: d.Hint}
		if d.Severity == declaration.Error {
			out.Mistakes = append(out.Mistakes, r)
		} else {
			out.Warnings = append(out.Warnings, r)
		}
	}
	return out
}

// showChecked says that a configuration can be used, and what was warned of.
func (a *app) showChecked(c configCheck) error {
	if a.json {
		return a.printJSON(c)
	}
	verdict := "nothing is wrong"
	if n := len(c.Warnings); n > 0 {
		verdict = "it can be used, with " + count1(n, "warning", "warnings")
	}
	a.printf("%s: %s; %s, %s\n", c.Config, verdict, count1(c.Repositories, "repository", "repositories"), count1(c.Stacks, "stack", "stacks"))
	return nil
}
