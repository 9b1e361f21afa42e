package declaration

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
)

// Severity is how much a diagnostic matters.
type Severity string

// The severities. A set with an error is not to be acted on.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Diagnostic is one remark on the input, at its place.
type Diagnostic struct {
	Severity Severity
	Summary  string
	Detail   string
	Hint     string // how to mend it
	Range    hcl.Range
	Line     string // the source line at which Range starts
}

// Diagnostics are remarks, in the order of their places.
type Diagnostics []Diagnostic

// HasErrors reports whether one of them is an error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Err is nil without errors, else one error with all of them as text.
func (ds Diagnostics) Err() error {
	var b strings.Builder
	for _, d := range ds {
		if d.Severity == Error {
			b.WriteString(d.String() + "\n")
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.TrimSuffix(b.String(), "\n"))
}

// String is the diagnostic in one line: file:line:column, summary, detail and hint.
func (d Diagnostic) String() string {
	out := string(d.Severity) + ": " + inert(d.Summary)
	if d.Range.Filename != "" {
		out = fmt.Sprintf("%s:%d:%d: %s", inert(d.Range.Filename), d.Range.Start.Line, d.Range.Start.Column, out)
	}
	for _, more := range []string{d.Detail, d.Hint} {
		if more != "" {
			out += ". " + strings.TrimSuffix(inert(more), ".")
		}
	}
	return out
}

// Render writes the diagnostics as plain text, each with its line and carets below
// the place. Control and direction characters of the source are replaced.
func (ds Diagnostics) Render(w io.Writer) error {
	for i, d := range ds {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, d.text()); err != nil {
			return err
		}
	}
	return nil
}

func (d Diagnostic) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.Severity, inert(d.Summary))
	pad := ""
	if d.Range.Filename != "" {
		number := fmt.Sprint(d.Range.Start.Line)
		pad = strings.Repeat(" ", len(number))
		fmt.Fprintf(&b, "%s--> %s:%d:%d\n", pad, inert(d.Range.Filename), d.Range.Start.Line, d.Range.Start.Column)
		if d.Line != "" {
			line, under := d.caret()
			fmt.Fprintf(&b, "%s |\n%s | %s\n%s | %s\n", pad, number, line, pad, under)
		}
	}
	for _, more := range []struct{ lead, text string }{{"", d.Detail}, {"hint: ", d.Hint}} {
		for line := range strings.Lines(more.text) {
			fmt.Fprintf(&b, "%s = %s%s\n", pad, more.lead, strings.TrimRight(inert(line), "\n "))
			more.lead = strings.Repeat(" ", len(more.lead))
		}
	}
	return b.String()
}

// longestLine is how many characters of a source line are shown.
const longestLine = 160

// caret is the line as shown and what stands below it. Bytes of the range that lie
// on later lines are not marked.
func (d Diagnostic) caret() (line, under string) {
	start, end := d.Range.Start.Column-1, d.Range.End.Column-1
	runes := []rune(d.Line)
	if d.Range.End.Line != d.Range.Start.Line {
		end = len(runes)
	}
	if start > longestLine { // the place must be seen
		cut := min(start-20, len(runes))
		runes, start, end = runes[cut:], start-cut, end-cut
	}
	if len(runes) > longestLine {
		runes = runes[:longestLine]
	}
	start, end = min(start, len(runes)), min(end, len(runes))
	var lead strings.Builder
	for _, r := range runes[:max(start, 0)] {
		if r == '\t' {
			lead.WriteByte('\t')
		} else {
			lead.WriteByte(' ')
		}
	}
	return inert(string(runes)), lead.String() + strings.Repeat("^", max(end-start, 1))
}

// inert makes text from the input harmless on a terminal and in a log.
func inert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// reporter gathers diagnostics.
type reporter struct{ found Diagnostics }

func (r *reporter) add(severity Severity, at hcl.Range, summary, detail, hint string) {
	if len(r.found) < mostDiagnostics {
		r.found = append(r.found, Diagnostic{Severity: severity, Summary: summary, Detail: detail, Hint: hint, Range: at})
	}
}

func (r *reporter) refuse(at hcl.Range, summary, detail, hint string) {
	r.add(Error, at, summary, detail, hint)
}

// take translates what the hcl library found.
func (r *reporter) take(diags hcl.Diagnostics) {
	for _, d := range diags {
		severity, at := Error, hcl.Range{}
		if d.Severity == hcl.DiagWarning {
			severity = Warning
		}
		if d.Subject != nil {
			at = *d.Subject
		}
		r.add(severity, at, d.Summary, d.Detail, "")
	}
}

// finish sorts, drops repetitions and adds the source lines.
func (r *reporter) finish(sources map[string][]byte) Diagnostics {
	ds := r.found
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Range.Filename, b.Range.Filename), cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte))
	})
	ds = slices.Compact(ds)
	for i := range ds {
		ds[i].Line = lineAt(sources[ds[i].Range.Filename], ds[i].Range.Start.Byte)
	}
	return ds
}

// lineAt is the whole line that holds a byte.
func lineAt(source []byte, at int) string {
	if at < 0 || at > len(source) {
		return ""
	}
	from := strings.LastIndexByte(string(source[:at]), '\n') + 1
	line := string(source[from:])
	if to := strings.IndexByte(line, '\n'); to >= 0 {
		line = line[:to]
	}
	return strings.TrimRight(line, "\r")
}

// nearest is a hint with the name that differs least from a wrong one, or with those that
// differ equally little; else with all of a few. A name that differs in more than a third
// of its letters is no guess at all.
func nearest(name string, known []string) string {
	var best []string
	at := max(len(name)/3, 1)
	for _, k := range known {
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if d < at {
			best, at = nil, d
		}
		if d == at && d < len(name) && !slices.Contains(best, k) {
			best = append(best, k)
		}
	}
	switch {
	case len(best) == 1 || len(best) > 3:
		return fmt.Sprintf("did you mean %q?", best[0])
	case len(best) > 1:
		return fmt.Sprintf("did you mean %q", best[0]) + orEach(best[1:]) + "?"
	case len(known) > 0 && len(known) <= 12:
		return "there are: " + strings.Join(known, ", ")
	}
	return ""
}

// orEach is each name behind an or.
func orEach(names []string) string {
	var out strings.Builder
	for _, n := range names {
		fmt.Fprintf(&out, " or %q", n)
	}
	return out.String()
}

// editDistance counts the letters that are put in, taken out or changed; two neighbours
// that changed places count as one.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	above, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		above, last, row = last, row, above
		row[0] = i
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				row[j] = last[j-1]
				continue
			}
			row[j] = 1 + min(last[j-1], row[j-1], last[j])
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], 1+above[j-2])
			}
		}
	}
	return row[len(b)]
}
