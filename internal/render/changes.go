package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/internal/planning"
)

// ChangesOf are the changes of a plan as a sheet has them: what is yours, or cannot be
// told. StackOf has what is theirs beside them.
func ChangesOf(cs planning.Changes) []Change {
	out := make([]Change, 0, len(cs.List))
	for _, c := range cs.List {
		out = append(out, changeOf(c))
	}
	return out
}

func changeOf(c planning.Change) Change {
	one := Change{Address: c.Address.String(), Action: c.Action, ID: c.ID, Held: c.Blocked, Notes: slices.Clone(c.Notes)}
	if c.Previous != nil {
		one.From = c.Previous.String()
	}
	for _, f := range c.Fields {
		if f.Whose != planning.Theirs {
			one.Fields = append(one.Fields, fieldOf(f))
		}
	}
	return one
}

// fieldOf is a field as it is shown; what is sensitive is not.
func fieldOf(f planning.FieldChange) Field {
	out := Field{Path: f.Path, Before: hclOf(string(f.Before)), After: hclOf(string(f.After))}
	if f.Unknown {
		out.After = "(known after apply)"
	}
	if f.Sensitive {
		out.Before, out.After = "(sensitive)", "(sensitive)"
	}
	return out
}

// hclOf is a JSON value as HCL would write it; nothing for null.
func hclOf(json string) string {
	if json == "null" || json == "" {
		return ""
	}
	return json
}

// Changes writes what a plan does, one thing after the other with what differs, and the
// plan in one line. Things that stay as they are are counted, not listed, unless there is
// something to say of them.
func Changes(w io.Writer, cs planning.Changes, o Options) error {
	p := o.printer(w)
	kept := 0
	for _, c := range cs.List {
		if !c.Pending() && c.Previous == nil && c.Blocked == "" && len(c.Notes) == 0 {
			kept++
			continue
		}
		oneChange(p, c, o)
	}
	if kept > 0 {
		p.line("%s", o.paint(dim, fmt.Sprintf("  %s as declared", planning.Count(kept, "thing"))))
	}
	p.line("")
	p.line("%s  (plan digest %s)", o.paint(bold, cs.Summary()), planning.ShortDigest(cs.Digest()))
	return p.err
}

func oneChange(p *printer, c planning.Change, o Options) {
	sign, tone := changeSign(c)
	line := o.paint(tone, sign) + " " + Inert(c.Address.String())
	if c.ID != "" {
		line += " (" + Inert(c.ID) + ")"
	}
	if c.Previous != nil {
		line += ", was " + Inert(c.Previous.String())
	}
	switch c.Action {
	case planning.Start:
		line += ": it is made already and is started"
	case planning.Steer:
		line += ": " + c.Control.String() + " it"
	case planning.NoOp, planning.Create, planning.Update, planning.Replace, planning.Delete:
	}
	p.line("%s", line)
	for _, text := range declaredLines(c) {
		p.line("    %s", text)
	}
	for _, f := range c.Fields {
		p.line("    %s", fieldLine(f))
	}
	for _, text := range c.Notes {
		p.paragraph(text, "    ", "    ")
	}
	if c.Blocked != "" {
		p.paragraph(c.Blocked, "    "+o.paint(red, "blocked: "), "    ")
	}
	if c.Protected && (c.Action == planning.Replace || c.Action == planning.Delete) {
		p.line("    %s prevent_destroy keeps it", o.paint(red, "blocked:"))
	}
}

// paragraph writes a text that may be long, its first line after a lead of its own.
func (p *printer) paragraph(text, lead, indent string) {
	for i, line := range wrapped(Inert(text), p.room(92, len(indent))) {
		if i == 0 {
			p.line("%s%s", lead, line)
			continue
		}
		p.line("%s%s", indent, line)
	}
}

func changeSign(c planning.Change) (string, tint) {
	switch c.Action {
	case planning.Create:
		return "+", green
	case planning.Update, planning.Start, planning.Steer:
		return "~", yellow
	case planning.Replace:
		return "-/+", red
	case planning.Delete:
		return "-", red
	case planning.NoOp:
	}
	if c.Previous != nil {
		return "→", yellow
	}
	return " ", dim
}

// declaredLines say what is made, where nothing of it stands yet.
func declaredLines(c planning.Change) []string {
	if c.Action != planning.Create {
		return nil
	}
	switch d := c.Declared; {
	case d.Endpoint != nil:
		return []string{"name " + shownField(d.Endpoint.Name) + ", " + Inert(d.Endpoint.Visibility.Value)}
	case d.Deployment != nil:
		line := "name " + shownField(d.Deployment.Name)
		if d.Deployment.Model.Given || d.Deployment.Model.Unknown {
			line += ", model " + shownField(d.Deployment.Model)
		}
		if d.Deployment.Config.Given || d.Deployment.Config.Unknown {
			line += ", config " + shownField(d.Deployment.Config)
		}
		line += fmt.Sprintf(", %d to %d replicas", d.Deployment.MinReplicas.Value, d.Deployment.MaxReplicas.Value)
		if w := d.Deployment.InitialTrafficWeight.Value; w > 0 {
			line += ", weight " + number(w)
		}
		return []string{line}
	case d.Rollout != nil && c.Journey != nil:
		return []string{Inert(c.Journey.Summary())}
	}
	return nil
}

func shownField(f declaration.Field[string]) string {
	if f.Unknown {
		return "(known after apply)"
	}
	return strconv.Quote(Inert(f.Value))
}

func fieldLine(f planning.FieldChange) string {
	shown := fieldOf(f)
	parts := []string{Inert(f.Path) + "  " + Inert(orNone(shown.Before)) + " → " + Inert(orNone(shown.After))}
	if f.Replaces {
		parts = append(parts, "forces another one")
	}
	switch f.Whose {
	case planning.Yours:
		parts = append(parts, "yours: the declaration changed")
	case planning.Theirs:
		parts = append(parts, "theirs: somebody changed what is live")
	case planning.Untold:
	}
	return strings.Join(parts, "  · ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
