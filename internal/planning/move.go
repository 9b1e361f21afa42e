package planning

import (
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// moved follows a set's moved blocks from an address that is not declared any more; ok is
// false when they lead nowhere.
func moved(set declaration.Set, from declaration.Address) (to declaration.Address, ok bool) {
	declared := map[string]declaration.Address{}
	for _, a := range set.Order {
		declared[a.String()] = a
	}
	at := from.String()
	for range set.Moves {
		next := ""
		for _, m := range set.Moves {
			if next = follow(m, at); next != "" {
				break
			}
		}
		if next == "" {
			break
		}
		if at = next; declared[at] != (declaration.Address{}) {
			return declared[at], true
		}
	}
	return declaration.Address{}, false
}

// follow is where one move leads from an address: the whole address, or the block that it
// is an instance of.
func follow(m declaration.Move, at string) string {
	if at == m.From {
		return m.To
	}
	if instance, of := strings.CutPrefix(at, m.From); of && strings.HasPrefix(instance, "[") && !strings.Contains(m.To, "[") {
		return m.To + instance
	}
	return ""
}
