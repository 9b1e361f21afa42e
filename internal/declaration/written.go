package declaration

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Written is a resource block as it stands in the text, for those who judge how a value
// came to be: its attributes with a constant or with what they refer to.
type Written struct {
	Kind       Kind
	Name       string
	Attributes map[string]Expression // written ones, without the meta arguments
	Count      *Expression
	ForEach    *Expression
	Range      hcl.Range
}

// Expression is the right side of an attribute. Constant is its value as JSON where it
// refers to nothing; else References has what it refers to, each followed by what holds
// it: sluice_endpoint.chat.id, sluice_endpoint.chat.
type Expression struct {
	Constant   json.RawMessage
	References []string
}

// Variable is an input variable with its value.
type Variable struct {
	Name      string
	Value     cty.Value // without marks
	Sensitive bool
}

// Secret reports whether a value, or a part of it, follows from a sensitive variable.
func Secret(v cty.Value) bool {
	_, marks := v.UnmarkDeep()
	_, is := marks[secret{}]
	return is
}

// onlySecrets keeps the marks of what is sensitive and drops the others.
func onlySecrets(v cty.Value) cty.Value {
	plain, marked := v.UnmarkDeepWithPaths()
	kept := marked[:0]
	for _, m := range marked {
		if _, is := m.Marks[secret{}]; is {
			kept = append(kept, cty.PathValueMarks{Path: m.Path, Marks: cty.NewValueMarks(secret{})})
		}
	}
	return plain.MarkWithPaths(kept)
}

// written lists the resource blocks of a module in the order of the text.
func (m *module) written() []Written {
	var out []Written
	for _, n := range m.nodes {
		if n.id.kind != resourceNode {
			continue
		}
		w := Written{Kind: Kind(n.id.typ), Name: n.id.name, Range: n.at, Attributes: map[string]Expression{}}
		for _, a := range sortedAttributes(n.body) {
			e := expressionOf(a.Expr)
			switch a.Name {
			case "count":
				w.Count = &e
			case "for_each":
				w.ForEach = &e
			case "depends_on", "provider":
			default:
				w.Attributes[a.Name] = e
			}
		}
		out = append(out, w)
	}
	return out
}

func expressionOf(x hclsyntax.Expression) Expression {
	var out Expression
	seen := map[string]bool{}
	for _, t := range x.Variables() {
		for _, text := range holders(t) {
			if !seen[text] {
				seen[text] = true
				out.References = append(out.References, text)
			}
		}
	}
	if len(out.References) > 0 {
		return out
	}
	if v, ok := evaluate(&reporter{}, x, &hcl.EvalContext{Functions: functions}); ok && v.IsWhollyKnown() && !v.IsMarked() && size(v) <= largestValue {
		if b, err := ctyjson.Marshal(v, v.Type()); err == nil {
			out.Constant = b
		}
	}
	return out
}

// holders are a reference and what holds it, the longest first. Of a variable, a local
// or a loop's value only the thing itself is named.
func holders(t hcl.Traversal) []string {
	root := t.RootName()
	if !strings.HasPrefix(root, "sluice_") && root != "data" {
		if len(t) > 1 {
			return []string{traversalText(t[:2])}
		}
		return []string{root}
	}
	least := 2
	if root == "data" {
		least = 3
	}
	var out []string
	for n := len(t); n >= least; n-- {
		if _, splat := t[n-1].(hcl.TraverseSplat); splat {
			continue
		}
		out = append(out, traversalText(t[:n]))
	}
	return out
}

// attributesOf is everything that an instance declares, as one object in the form of its
// kind. What only an engine gives is unknown.
func attributesOf(i *instance) cty.Value {
	return onlySecrets(cty.ObjectVal(i.values))
}

// variables are the values of all variables, by name.
func (e *evaluator) variables() []Variable {
	var out []Variable
	byName := map[string]cty.Value{}
	for id, v := range e.values {
		if id.kind == variableNode {
			byName[id.name] = v
		}
	}
	for _, name := range sortedKeys(byName) {
		plain, _ := byName[name].UnmarkDeep()
		out = append(out, Variable{Name: name, Value: plain, Sensitive: Secret(byName[name])})
	}
	return out
}

// String is the block's address without an instance.
func (w Written) String() string { return fmt.Sprintf("%s.%s", w.Kind, w.Name) }
