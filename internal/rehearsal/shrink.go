package rehearsal

import (
	"slices"
	"strings"
)

// Shrink drops lines from a script, and the parts of its lines, for as long as it still
// fails, and returns the shortest one found. fails plays a script and says whether it
// shows the same fault.
func Shrink(s Script, fails func(Script) bool) Script {
	for again := true; again; {
		again = false
		for _, shorter := range []func(Script, int) (Script, bool){withoutWhen, withoutGiven, withSimplerGiven} {
			for i := 0; ; {
				next, ok := shorter(s, i)
				if !ok {
					break
				}
				if next.String() != s.String() && fails(next) {
					s, again = next, true
					continue
				}
				i++
			}
		}
	}
	return s
}

func withoutWhen(s Script, i int) (Script, bool) {
	if i >= len(s.When) {
		return s, false
	}
	return Script{Given: s.Given, When: slices.Delete(slices.Clone(s.When), i, i+1)}, true
}

// withoutGiven drops a fact that has a default.
func withoutGiven(s Script, i int) (Script, bool) {
	if i >= len(s.Given) {
		return s, false
	}
	if strings.HasPrefix(s.Given[i], "rollout:") {
		return s, true
	}
	return Script{Given: slices.Delete(slices.Clone(s.Given), i, i+1), When: s.When}, true
}

// withSimplerGiven drops the last clause of a fact.
func withSimplerGiven(s Script, i int) (Script, bool) {
	if i >= len(s.Given) {
		return s, false
	}
	at := strings.LastIndex(s.Given[i], ";")
	if at < 0 {
		return s, true
	}
	given := slices.Clone(s.Given)
	given[i] = given[i][:at]
	return Script{Given: given, When: s.When}, true
}
