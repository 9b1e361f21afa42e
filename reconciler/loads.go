package reconciler

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// loads keeps the newest evaluations of one folder. A stack is planned again and again
// with the same files, and mostly with the same things standing: to read the HCL anew
// each time would be most of the work of a pass.
type loads struct {
	digest string // of the folder; another one begins anew
	kept   []loaded
	known  map[declaration.Ref]cty.Value // what stood at the last plan
}

type loaded struct {
	options declaration.Options
	set     declaration.Set
	diags   declaration.Diagnostics
}

// mostLoads is how many evaluations of one folder are kept: without and with what stands.
const mostLoads = 3

// load evaluates a folder, or gives what it has evaluated to. A set is not changed once
// it is made. Nil keeps nothing.
func (l *loads) load(o folder, options declaration.Options) (declaration.Set, declaration.Diagnostics) {
	if len(o.Files) == 0 {
		return declaration.Set{}, nil // a folder without files asks for nothing
	}
	if l == nil {
		return declaration.LoadFiles(o.Files, options)
	}
	if l.digest != o.Digest {
		*l = loads{digest: o.Digest}
	}
	for _, k := range l.kept {
		if sameTimings(k.options, options) && sameKnown(k.options.Known, options.Known) {
			return k.set, k.diags
		}
	}
	set, diags := declaration.LoadFiles(o.Files, options)
	if len(l.kept) == mostLoads {
		l.kept = l.kept[1:]
	}
	l.kept = append(l.kept, loaded{options, set, diags})
	return set, diags
}

func sameTimings(a, b declaration.Options) bool {
	return a.Timings == nil && b.Timings == nil || a.Timings != nil && b.Timings != nil && *a.Timings == *b.Timings
}

// sameKnown reports whether an engine has told the same of what stands.
func sameKnown(a, b map[declaration.Ref]cty.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for ref, v := range a {
		if w, ok := b[ref]; !ok || !v.RawEquals(w) {
			return false
		}
	}
	return true
}
