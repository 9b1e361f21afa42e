package declaration

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// resolve finds what each node refers to. A reference to something that is not
// declared is refused at its place.
func (m *module) resolve() {
	for _, n := range m.nodes {
		for _, t := range n.traversals() {
			id, ok := m.target(t)
			if !ok {
				continue
			}
			n.needs = append(n.needs, reference{to: id, at: t.SourceRange()})
		}
	}
}

// traversals are all references of a node, in the order of the text. What a
// variable's validation says about the variable itself is none.
func (n *node) traversals() []hcl.Traversal {
	if n.expr != nil {
		return n.expr.Variables()
	}
	if n.id.kind == variableNode {
		return nil
	}
	return bodyTraversals(n.body)
}

func bodyTraversals(b *hclsyntax.Body) []hcl.Traversal {
	var out []hcl.Traversal
	for _, a := range sortedAttributes(b) {
		if a.Name == "provider" || a.Name == "ignore_changes" || a.Name == "replace_triggered_by" {
			continue // names, not values
		}
		out = append(out, a.Expr.Variables()...)
	}
	for _, inner := range b.Blocks {
		out = append(out, bodyTraversals(inner.Body)...)
	}
	return out
}

// builtin are roots that are no nodes.
var builtin = []string{"each", "count", "self", "path", "terraform"}

// target is the node that a reference leads to; ok is false for a builtin and for
// what is refused.
func (m *module) target(t hcl.Traversal) (nodeID, bool) {
	root, at := t.RootName(), t.SourceRange()
	if slices.Contains(builtin, root) {
		return nodeID{}, false
	}
	steps := attributeSteps(t)
	switch {
	case root == "module":
		m.onlyTerraform(at, "a reference to a module")
		return nodeID{}, false
	case root == "data" && len(steps) >= 2:
		return m.declared(nodeID{kind: dataNode, typ: steps[0], name: steps[1]}, at)
	case root == "var" && len(steps) >= 1:
		return m.declared(nodeID{kind: variableNode, name: steps[0]}, at)
	case root == "local" && len(steps) >= 1:
		return m.declared(nodeID{kind: localNode, name: steps[0]}, at)
	case root == "data" || root == "var" || root == "local":
		m.report.refuse(at, "Incomplete reference", fmt.Sprintf("%q names nothing.", traversalText(t)), "name the thing after a dot")
		return nodeID{}, false
	case strings.HasPrefix(root, "sluice_") && len(steps) >= 1:
		return m.declared(nodeID{kind: resourceNode, typ: root, name: steps[0]}, at)
	case strings.HasPrefix(root, "sluice_"):
		m.report.refuse(at, "Incomplete reference", fmt.Sprintf("%q names no resource.", root), "name it after a dot, such as "+root+".chat.id")
		return nodeID{}, false
	}
	if len(steps) == 0 {
		m.report.refuse(at, "Invalid reference", fmt.Sprintf("%q is nothing that can be referred to.", root), "put a text into quotes")
		return nodeID{}, false
	}
	m.onlyTerraform(at, fmt.Sprintf("a reference to %s.%s", root, steps[0]))
	return nodeID{}, false
}

func (m *module) declared(id nodeID, at hcl.Range) (nodeID, bool) {
	if _, ok := m.byID[id]; ok {
		return id, true
	}
	if len(m.report.found) >= mostDiagnostics {
		return nodeID{}, false
	}
	var known []string
	for _, n := range m.nodes {
		if n.id.kind == id.kind && n.id.typ == id.typ {
			known = append(known, n.id.name)
		}
	}
	m.report.refuse(at, fmt.Sprintf("%s is not declared", id), "", nearest(id.name, known))
	return nodeID{}, false
}

// attributeSteps are the names after a traversal's root.
func attributeSteps(t hcl.Traversal) []string {
	var out []string
	for _, s := range t[1:] {
		a, ok := s.(hcl.TraverseAttr)
		if !ok {
			break
		}
		out = append(out, a.Name)
	}
	return out
}

func traversalText(t hcl.Traversal) string {
	var b strings.Builder
	for _, s := range t {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			if s.Key.Type() == cty.String {
				fmt.Fprintf(&b, "[%q]", s.Key.AsString())
			} else if s.Key.Type() == cty.Number {
				b.WriteString("[" + s.Key.AsBigFloat().Text('f', 0) + "]")
			}
		}
	}
	return b.String()
}

// order lists the nodes so that each comes after all that it refers to, and is
// otherwise in the order of the text. A cycle is refused and printed; what is on
// one, or behind one, is left out.
func (m *module) order() []*node {
	place, waiting, waited := map[nodeID]int{}, map[nodeID]int{}, map[nodeID][]nodeID{}
	ready := &placeHeap{}
	for i, n := range m.nodes {
		place[n.id] = i
		for _, to := range n.distinct() {
			waiting[n.id]++
			waited[to] = append(waited[to], n.id)
		}
		if waiting[n.id] == 0 {
			heap.Push(ready, i)
		}
	}
	var out []*node
	for ready.Len() > 0 {
		i, ok := heap.Pop(ready).(int)
		if !ok {
			break
		}
		n := m.nodes[i]
		out = append(out, n)
		for _, w := range waited[n.id] {
			if waiting[w]--; waiting[w] == 0 {
				heap.Push(ready, place[w])
			}
		}
	}
	if len(out) < len(m.nodes) {
		m.cycle(waiting)
	}
	return out
}

func (n *node) distinct() []nodeID {
	var out []nodeID
	seen := map[nodeID]bool{}
	for _, r := range n.needs {
		if !seen[r.to] {
			seen[r.to] = true
			out = append(out, r.to)
		}
	}
	return out
}

// cycle prints one cycle among the nodes that still wait: each of them waits for
// another one that does, so following them comes back somewhere.
func (m *module) cycle(waiting map[nodeID]int) {
	var at *node
	for _, n := range m.nodes {
		if waiting[n.id] > 0 {
			at = n
			break
		}
	}
	var path []reference
	seen := map[nodeID]int{}
	for {
		if first, ok := seen[at.id]; ok {
			path = path[first:]
			break
		}
		seen[at.id] = len(path)
		i := slices.IndexFunc(at.needs, func(r reference) bool { return waiting[r.to] > 0 })
		path = append(path, at.needs[i])
		at = m.byID[at.needs[i].to]
	}
	var names, places []string
	names = append(names, path[len(path)-1].to.String())
	for _, r := range path {
		names = append(names, r.to.String())
		places = append(places, fmt.Sprintf("%s is referred to at %s:%d", r.to, r.at.Filename, r.at.Start.Line))
	}
	m.report.refuse(path[0].at, "References go in a circle", strings.Join(names, " -> ")+"\n"+strings.Join(places, "\n"),
		"one of them must not need the other")
}

// placeHeap gives the smallest place first.
type placeHeap []int

func (h placeHeap) Len() int           { return len(h) }
func (h placeHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h placeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds a place.
func (h *placeHeap) Push(v any) {
	if i, ok := v.(int); ok {
		*h = append(*h, i)
	}
}

// Pop takes the last place.
func (h *placeHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
