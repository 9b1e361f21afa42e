package declaration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// nodeKind says what a node of the reference graph is.
type nodeKind string

const (
	variableNode nodeKind = "var"
	localNode    nodeKind = "local"
	resourceNode nodeKind = "resource"
	dataNode     nodeKind = "data"
	outputNode   nodeKind = "output"
	checkNode    nodeKind = "check"
)

// nodeID names a node.
type nodeID struct {
	kind nodeKind
	typ  string // of a resource or data block
	name string
}

// String is the node as a reference has it.
func (n nodeID) String() string {
	switch n.kind {
	case resourceNode:
		return n.typ + "." + n.name
	case dataNode:
		return "data." + n.typ + "." + n.name
	case variableNode, localNode, outputNode, checkNode:
	}
	return string(n.kind) + "." + n.name
}

// node is something that is evaluated once.
type node struct {
	id    nodeID
	at    hcl.Range       // of the header
	body  *hclsyntax.Body // of a block
	expr  hclsyntax.Expression
	block *hclsyntax.Block
	needs []reference // in the order of the text
}

// reference is a reference to another node and where it is written.
type reference struct {
	to nodeID
	at hcl.Range
}

// module is what a folder declares, in the order of files and lines.
type module struct {
	nodes  []*node
	byID   map[nodeID]*node
	moves  []Move
	unread []Check // that are not evaluated here
	blocks int
	report *reporter
}

// tolerated are blocks that mean something to Terraform only and change nothing
// about what is declared.
var tolerated = []string{"terraform", "provider"}

// collect sorts the blocks of parsed files.
func collect(report *reporter, files []*hclsyntax.Body) *module {
	m := &module{byID: map[nodeID]*node{}, report: report}
	for _, f := range files {
		for _, a := range sortedAttributes(f) {
			report.refuse(a.NameRange, "A value outside of any block", fmt.Sprintf("%q stands at the top of the file.", a.Name), "values of variables belong into a .tfvars file, others into a locals block")
		}
		for _, b := range f.Blocks {
			if m.blocks++; m.blocks > mostBlocks {
				report.refuse(b.DefRange(), "Too many blocks", fmt.Sprintf("At most %d are read.", mostBlocks), "")
				return m
			}
			m.take(b)
		}
	}
	return m
}

func (m *module) take(b *hclsyntax.Block) {
	if slices.Contains(tolerated, b.Type) {
		return
	}
	labels, known := map[string]int{"variable": 1, "locals": 0, "output": 1, "resource": 2, "data": 2, "moved": 0, "check": 1, "module": 1, "import": 0, "removed": 0, "ephemeral": 2, "action": 2}[b.Type]
	if !known {
		m.report.refuse(b.TypeRange, fmt.Sprintf("Unknown block %q", b.Type), "", nearest(b.Type, []string{"resource", "variable", "locals", "output", "data", "terraform", "provider", "moved", "check"}))
		return
	}
	if len(b.Labels) != labels {
		m.report.refuse(b.DefRange(), fmt.Sprintf("A %s block has %d label(s)", b.Type, labels), fmt.Sprintf("This one has %d.", len(b.Labels)), "")
		return
	}
	switch b.Type {
	case "variable":
		m.add(&node{id: nodeID{kind: variableNode, name: b.Labels[0]}, at: b.DefRange(), body: b.Body, block: b})
	case "output":
		m.add(&node{id: nodeID{kind: outputNode, name: b.Labels[0]}, at: b.DefRange(), body: b.Body, block: b})
	case "locals":
		for _, a := range sortedAttributes(b.Body) {
			if m.blocks++; m.blocks > mostBlocks {
				m.report.refuse(a.SrcRange, "Too many blocks", fmt.Sprintf("At most %d are read.", mostBlocks), "")
				return
			}
			m.add(&node{id: nodeID{kind: localNode, name: a.Name}, at: a.NameRange, expr: a.Expr})
		}
	case "resource":
		m.resource(b)
	case "data":
		m.data(b)
	case "moved":
		m.moved(b)
	case "check":
		m.checkBlock(b)
	case "import", "removed":
		m.report.add(Note, b.DefRange(), fmt.Sprintf("%s blocks speak of Terraform's state", b.Type), "This one is left out.", "")
	case "module", "ephemeral", "action":
		m.onlyTerraform(b.DefRange(), fmt.Sprintf("%s %q", b.Type, strings.Join(b.Labels, ".")))
	}
}

func (m *module) onlyTerraform(at hcl.Range, what string) {
	m.report.refuse(at, "Only Terraform can evaluate "+what,
		fmt.Sprintf("%s:%d: this door reads sluice's own resources, variables, locals and outputs.", at.Filename, at.Start.Line),
		"run this folder under Terraform, or declare it with sluice's resources alone")
}

func (m *module) resource(b *hclsyntax.Block) {
	typ := b.Labels[0]
	if !strings.HasPrefix(typ, "sluice_") {
		m.onlyTerraform(b.DefRange(), fmt.Sprintf("resource %q of another provider", typ))
		return
	}
	if slices.Contains(terraformAlone, typ) {
		m.onlyTerraform(b.DefRange(), fmt.Sprintf("resource %q", typ))
		return
	}
	if _, ok := kinds[Kind(typ)]; !ok {
		m.report.refuse(b.LabelRanges[0], fmt.Sprintf("Unknown resource type %q", typ), "", nearest(typ, []string{string(EndpointKind), string(DeploymentKind), string(RolloutKind)}))
		return
	}
	if !hclsyntax.ValidIdentifier(b.Labels[1]) {
		m.report.refuse(b.LabelRanges[1], fmt.Sprintf("%q is not a name", inert(b.Labels[1])), "A name has letters, digits, - and _, and begins with a letter or _.", "")
		return
	}
	m.add(&node{id: nodeID{kind: resourceNode, typ: typ, name: b.Labels[1]}, at: b.DefRange(), body: b.Body, block: b})
}

func (m *module) data(b *hclsyntax.Block) {
	if !strings.HasPrefix(b.Labels[0], "sluice_") {
		m.onlyTerraform(b.DefRange(), fmt.Sprintf("data %q of another provider", b.Labels[0]))
		return
	}
	m.report.add(Note, b.DefRange(), "This data source is not read here", "What follows from it is not known here.", "")
	m.add(&node{id: nodeID{kind: dataNode, typ: b.Labels[0], name: b.Labels[1]}, at: b.DefRange(), body: b.Body, block: b})
}

func (m *module) moved(b *hclsyntax.Block) {
	move := Move{Range: b.DefRange()}
	for _, side := range []struct {
		name string
		to   *string
	}{{"from", &move.From}, {"to", &move.To}} {
		a, ok := b.Body.Attributes[side.name]
		if !ok {
			m.report.refuse(b.DefRange(), "A moved block has from and to", fmt.Sprintf("%q is missing.", side.name), "")
			return
		}
		traversal, diags := hcl.AbsTraversalForExpr(a.Expr)
		if diags.HasErrors() {
			m.report.refuse(a.Expr.Range(), "Not an address", "", "write it without quotes, such as sluice_rollout.qwen35")
			return
		}
		*side.to = traversalText(traversal)
	}
	m.moves = append(m.moves, move)
}

func (m *module) add(n *node) {
	if before, ok := m.byID[n.id]; ok {
		m.report.refuse(n.at, fmt.Sprintf("%s is declared twice", n.id), fmt.Sprintf("It stands at %s:%d already.", before.at.Filename, before.at.Start.Line), "give one of them another name")
		return
	}
	m.byID[n.id] = n
	m.nodes = append(m.nodes, n)
}

// sortedAttributes are a body's attributes in the order of the text.
func sortedAttributes(b *hclsyntax.Body) []*hclsyntax.Attribute {
	out := make([]*hclsyntax.Attribute, 0, len(b.Attributes))
	for _, a := range b.Attributes {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int { return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte })
	return out
}
