package planning

import (
	"encoding/json"

	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// effect says what a different value takes.
type effect int

const (
	updates effect = iota
	replaces
)

// fields finds the attributes of one change that differ.
type fields struct {
	change    *Change
	remembers bool // what was applied last is known
}

func (f *fields) text(path, live string, declared, applied declaration.Field[string], e effect) {
	if !declared.Unknown && declared.Value == live {
		return
	}
	f.add(path, live, declared.Value, declared.Unknown, !applied.Unknown && declared.Value == applied.Value, e)
}

func (f *fields) whole(path string, live int, declared, applied declaration.Field[int], e effect) {
	if !declared.Unknown && declared.Value == live {
		return
	}
	f.add(path, live, declared.Value, declared.Unknown, !applied.Unknown && declared.Value == applied.Value, e)
}

// add notes a difference. unchanged says that the declaration has the value that was
// applied last, so that it is what is live that changed.
func (f *fields) add(path string, before, after any, unknown, unchanged bool, e effect) {
	whose := Untold
	switch {
	case f.remembers && unchanged:
		whose = Theirs
	case f.remembers:
		whose = Yours
	}
	x := FieldChange{Path: path, Before: raw(before), After: raw(after), Unknown: unknown, Replaces: e == replaces, Whose: whose}
	if unknown {
		x.After = raw(nil)
	}
	x.Sensitive = f.change.sensitive(path)
	f.change.Fields = append(f.change.Fields, x)
	switch {
	case e == replaces:
		f.change.Action = Replace
	case f.change.Action == NoOp:
		f.change.Action = Update
	}
}

// sensitive reports whether the attribute at the head of a path follows from a sensitive
// variable.
func (c *Change) sensitive(path string) bool {
	all := c.Declared.block().Attributes
	if all == cty.NilVal {
		return false
	}
	all, _ = all.Unmark()
	name := head(path)
	return all.Type().HasAttribute(name) && declaration.Secret(all.GetAttr(name))
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("a plain value always marshals: " + err.Error())
	}
	return b
}
