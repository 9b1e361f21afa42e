package reconciler

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

// decoder reads a file and remembers where everything is written. It goes on after an
// error, so that all are told at once.
type decoder struct {
	found  declaration.Diagnostics
	folder string               // of the file; paths are relative to it
	places map[string]hcl.Range // by where, such as repository.models.url
	nested map[StackKey]bool
	now    time.Time // a freeze that is over is warned of
}

func (d *decoder) refuse(at hcl.Range, summary, detail, hint string) {
	d.found = append(d.found, declaration.Diagnostic{Severity: declaration.Error, Summary: summary, Detail: detail, Hint: hint, Range: at})
}

func (d *decoder) warn(at hcl.Range, summary, detail, hint string) {
	d.found = append(d.found, declaration.Diagnostic{Severity: declaration.Warning, Summary: summary, Detail: detail, Hint: hint, Range: at})
}

// at is where something is written, or where what encloses it is.
func (d *decoder) at(where string) hcl.Range {
	for {
		if r, ok := d.places[where]; ok {
			return r
		}
		i := strings.LastIndexByte(where, '\x00')
		if i < 0 {
			return hcl.Range{}
		}
		where = where[:i]
	}
}

// join makes a place's name. Names of users are in it, so that no dot is safe.
func join(parts ...string) string { return strings.TrimPrefix(strings.Join(parts, "\x00"), "\x00") }

// scope is one block that is being read.
type scope struct {
	d      *decoder
	block  Block
	where  string
	label  string
	header hcl.Range
	body   *hclsyntax.Body
}

// top is the file as a scope: it has blocks only.
func (d *decoder) top(body *hclsyntax.Body) *scope {
	s := &scope{d: d, body: body}
	s.refuseUnknown()
	return s
}

// name is the block's own.
func (b Block) name() string { return b.Path[strings.LastIndexByte(b.Path, '.')+1:] }

// children are the names of the blocks that may lie in a block.
func (b Block) children() []string {
	var out []string
	for _, c := range Reference {
		parent, name := "", c.Path
		if i := strings.LastIndexByte(c.Path, '.'); i >= 0 {
			parent, name = c.Path[:i], c.Path[i+1:]
		}
		if parent == b.Path {
			out = append(out, name)
		}
	}
	return out
}

func (s *scope) title() string {
	switch {
	case s.block.Path == "":
		return "the file"
	case s.label != "":
		return fmt.Sprintf("%s %q", s.block.name(), s.label)
	}
	return s.block.name()
}

func (s *scope) refuseUnknown() {
	known := s.block.names()
	for name, a := range s.body.Attributes {
		if slices.Contains(known, name) {
			s.d.places[join(s.where, name)] = a.Expr.Range()
			continue
		}
		literal := slices.ContainsFunc(s.block.Attributes, func(a Attribute) bool { return a.Type == SecretType && a.Name == name })
		switch {
		case literal:
			s.d.refuse(a.NameRange, secretInFile, fmt.Sprintf("%s of %s is a secret, and this file is not the place for it.", name, s.title()),
				fmt.Sprintf("write %s_file = \"path\" or %s_env = \"NAME\"", name, name))
		case slices.Contains(s.block.children(), name):
			s.d.refuse(a.NameRange, fmt.Sprintf("%s is a block", name), "", fmt.Sprintf("write %s { … } without the equals sign", name))
		default:
			s.d.refuse(a.NameRange, fmt.Sprintf("Unknown attribute %q in %s", name, s.title()), "", declaration.Nearest(name, known))
		}
	}
	children := s.block.children()
	for _, b := range s.body.Blocks {
		switch {
		case slices.Contains(children, b.Type):
		case slices.Contains(known, b.Type):
			s.d.refuse(b.TypeRange, fmt.Sprintf("%s is an attribute", b.Type), "", fmt.Sprintf("write %s = …", b.Type))
		default:
			s.d.refuse(b.TypeRange, fmt.Sprintf("Unknown block %q in %s", b.Type, s.title()), "", declaration.Nearest(b.Type, children))
		}
	}
}

// blocks opens those of a type, each under its label once.
func (s *scope) blocks(name string) []*scope {
	path := strings.TrimPrefix(s.block.Path+"."+name, ".")
	block := blockAt(path)
	var out []*scope
	seen := map[string]bool{}
	for _, b := range s.body.Blocks {
		if b.Type != name {
			continue
		}
		header := hcl.RangeBetween(b.TypeRange, b.OpenBraceRange)
		in := &scope{d: s.d, block: block, header: header, body: b.Body, where: join(s.where, name, fmt.Sprint(len(out)))}
		if !in.labels(b) {
			continue
		}
		if block.Label != "" {
			in.where = join(s.where, name, in.label)
			if seen[in.label] {
				s.d.refuse(header, fmt.Sprintf("%s %q is there twice", name, in.label), "", "give each a name of its own")
				continue
			}
			seen[in.label] = true
		}
		s.d.places[in.where] = header
		in.refuseUnknown()
		out = append(out, in)
	}
	return out
}

// labels checks a block's labels and takes the one that it may have.
func (s *scope) labels(b *hclsyntax.Block) bool {
	switch {
	case s.block.Label == "" && len(b.Labels) > 0:
		s.d.refuse(b.LabelRanges[0], fmt.Sprintf("A block %s has no label", b.Type), "", fmt.Sprintf("write %s { … }", b.Type))
		return false
	case s.block.Label == "":
		return true
	case len(b.Labels) != 1:
		s.d.refuse(s.header, fmt.Sprintf("A block %s has one label", b.Type), "It is the "+s.block.Label+".", fmt.Sprintf("write %s \"…\" { … }", b.Type))
		return false
	case !plainName(b.Labels[0]):
		s.d.refuse(b.LabelRanges[0], fmt.Sprintf("%q cannot be a name", b.Labels[0]), "A name has letters, digits, dots, dashes and underscores, begins with a letter or digit, and has at most 63 characters.", "")
	} // what stands in the block is read all the same: a bad name must not hide what else is wrong
	s.label = b.Labels[0]
	return true
}

// plainName reports whether a text can name something: "repository/stack" must be read
// in one way only.
func plainName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._-", r)) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// one opens a block that may be there once; nil when it is not there.
func (s *scope) one(name string) *scope {
	all := s.blocks(name)
	if len(all) == 0 {
		return nil
	}
	for _, more := range all[1:] {
		s.d.refuse(more.header, fmt.Sprintf("A second block %s in %s", name, s.title()), "", "put everything into one")
	}
	return all[0]
}

// value evaluates an attribute; false when it is not there or wrong.
func (s *scope) value(name string, want cty.Type, what string) (cty.Value, bool) {
	a, ok := s.body.Attributes[name]
	if !ok {
		return cty.NilVal, false
	}
	v, diags := a.Expr.Value(nil)
	if diags.HasErrors() {
		s.d.refuse(a.Expr.Range(), fmt.Sprintf("%s of %s must be written out", name, s.title()), diags[0].Summary+".", "a configuration has no variables and functions; a secret is given as …_file or …_env")
		return cty.NilVal, false
	}
	if v.IsNull() {
		return cty.NilVal, false
	}
	fits := v.Type().Equals(want)
	if want == cty.DynamicPseudoType { // the caller looks itself
		fits = true
	}
	if !fits {
		s.d.refuse(a.Expr.Range(), fmt.Sprintf("%s of %s must be %s", name, s.title(), what), fmt.Sprintf("It is a %s.", v.Type().FriendlyName()), "")
		return cty.NilVal, false
	}
	return v, true
}

// text is an attribute's text or its default.
func (s *scope) text(name string) string {
	a := s.block.attribute(name)
	v, ok := s.value(name, cty.String, "a text in quotes")
	if !ok {
		return a.Default
	}
	return v.AsString()
}

// choice is one of the words that the reference has for an attribute.
func choice[T ~string](s *scope, name string) T {
	a := s.block.attribute(name)
	got := s.text(name)
	if got != a.Default && !slices.Contains(a.Choices, got) {
		s.d.refuse(s.d.at(join(s.where, name)), fmt.Sprintf("%s of %s is none of %s", name, s.title(), strings.Join(a.Choices, ", ")), fmt.Sprintf("It is %q.", got), declaration.Nearest(got, a.Choices))
	}
	return T(got)
}

// file is a path, from the file's folder.
func (s *scope) file(name string) string {
	path := s.text(name)
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.d.folder, path)
}

func (s *scope) secret(name string) Secret {
	if s.block.attribute(name).Type != SecretType {
		panic(name + " is no secret in the reference")
	}
	var out Secret
	if v, ok := s.value(name+"_env", cty.String, "a text in quotes"); ok {
		out.Env = v.AsString()
	}
	if v, ok := s.value(name+"_file", cty.String, "a text in quotes"); ok {
		if out.File = v.AsString(); out.File != "" && !filepath.IsAbs(out.File) {
			out.File = filepath.Join(s.d.folder, out.File)
		}
	}
	for _, kind := range []string{"_env", "_file"} {
		if r, ok := s.d.places[join(s.where, name+kind)]; ok {
			s.d.places[join(s.where, name)] = r
		}
	}
	return out
}

func (s *scope) span(name string) time.Duration {
	a := s.block.attribute(name)
	text := s.text(name)
	if text == "" && a.Default == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		s.d.refuse(s.d.at(join(s.where, name)), fmt.Sprintf("%s of %s is no duration", name, s.title()), fmt.Sprintf("It is %q.", text), `write "90s", "10m" or "24h"`)
		d, _ = time.ParseDuration(a.Default)
	}
	return d
}

func (s *scope) instant(name string) time.Time {
	text := s.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.d.refuse(s.d.at(join(s.where, name)), fmt.Sprintf("%s of %s is no time", name, s.title()), fmt.Sprintf("It is %q.", text), `write it with its offset: "2026-12-24T18:00:00+01:00"`)
	}
	return t
}

func (s *scope) yes(name string) bool {
	s.block.attribute(name)
	v, ok := s.value(name, cty.Bool, "true or false")
	return ok && v.True()
}

// number is an attribute's number or its default.
func number[T int | int64 | float64](s *scope, name string) T {
	a := s.block.attribute(name)
	var out T
	if v, ok := s.value(name, cty.Number, "a number"); ok {
		if err := gocty.FromCtyValue(v, &out); err != nil {
			s.d.refuse(s.d.at(join(s.where, name)), fmt.Sprintf("%s of %s does not fit", name, s.title()), err.Error()+".", "")
		}
		return out
	}
	if a.Default != "" {
		v, err := cty.ParseNumberVal(a.Default)
		if err == nil {
			err = gocty.FromCtyValue(v, &out)
		}
		if err != nil {
			panic("the reference's default of " + a.Name + ": " + err.Error())
		}
	}
	return out
}

// texts are a list of texts.
func (s *scope) texts(name string) []string {
	s.block.attribute(name)
	v, ok := s.value(name, cty.DynamicPseudoType, "")
	if !ok {
		return nil
	}
	return s.list(name, v)
}

func (s *scope) list(name string, v cty.Value) []string {
	at := s.d.at(join(s.where, name))
	if !v.Type().IsTupleType() {
		s.d.refuse(at, fmt.Sprintf("%s of %s must be a list of texts", name, s.title()), fmt.Sprintf("It is a %s.", v.Type().FriendlyName()), `write ["one", "two"]`)
		return nil
	}
	out := []string{}
	for _, e := range v.AsValueSlice() {
		if e.IsNull() || e.Type() != cty.String {
			s.d.refuse(at, fmt.Sprintf("%s of %s must be a list of texts", name, s.title()), "", `write ["one", "two"]`)
			return nil
		}
		out = append(out, e.AsString())
	}
	return out
}

// object is a map's values by their names.
func (s *scope) object(name string) map[string]cty.Value {
	s.block.attribute(name)
	v, ok := s.value(name, cty.DynamicPseudoType, "")
	if !ok {
		return nil
	}
	if !v.Type().IsObjectType() {
		s.d.refuse(s.d.at(join(s.where, name)), fmt.Sprintf("%s of %s must be a map", name, s.title()), fmt.Sprintf("It is a %s.", v.Type().FriendlyName()), `write { name = … }`)
		return nil
	}
	return v.AsValueMap()
}

// mapping is a map of texts.
func (s *scope) mapping(name string) map[string]string {
	object := s.object(name)
	if object == nil {
		return nil
	}
	out := map[string]string{}
	for k, v := range object {
		if v.IsNull() || v.Type() != cty.String {
			s.d.refuse(s.d.at(join(s.where, name)), fmt.Sprintf("%s of %s must be a map of texts", name, s.title()), fmt.Sprintf("%s is a %s.", k, v.Type().FriendlyName()), `write "true" or "3" in quotes; it is read as the variable's type`)
			continue
		}
		out[k] = v.AsString()
	}
	return out
}
