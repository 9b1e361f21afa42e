package provider

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

// attributePath translates a field of the wire, "metrics[0].regressionCheck.direction",
// to the attribute that a person wrote, metrics[0].regression_check.direction.
func attributePath(field string) path.Path {
	p := path.Empty()
	for _, part := range strings.Split(declared(field), ".") {
		name, indices, _ := strings.Cut(part, "[")
		if name == "" {
			continue
		}
		p = p.AtName(snake(name))
		for _, index := range strings.Split(strings.TrimSuffix(indices, "]"), "][") {
			if i, err := strconv.Atoi(index); err == nil {
				p = p.AtListIndex(i)
			}
		}
	}
	return p
}

// topLevel is the attribute of the block that a path begins at. Diagnostics stand
// there and name the whole path in their words: for a path inside a nested attribute
// Terraform shows the block's first line, however far that is.
func topLevel(p path.Path) path.Path {
	steps := p.Steps()
	if len(steps) == 0 {
		return p
	}
	first, _ := steps.NextStep()
	if name, ok := first.(path.PathStepAttributeName); ok {
		return path.Root(string(name))
	}
	return p
}

// declared is a wire field as HCL has it: what travels under the key sluice stands
// beside the rest.
func declared(field string) string { return strings.TrimPrefix(field, "sluice.") }

// snake turns camelCase to snake_case.
func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
