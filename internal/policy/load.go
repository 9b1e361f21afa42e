package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"gopkg.in/yaml.v3"
)

// Rules are compiled: they can judge any number of plans at once.
type Rules struct {
	compiler *ast.Compiler
	data     document
	verdicts []query
}

// document is a JSON object as Rego sees it under data.
type document map[string]any

// query is one set of one package.
type query struct {
	ref      string // data.sluice.deny
	severity Severity
}

// barred are the builtins that would reach outside of the plan.
var barred = []string{"http.send", "net.lookup_ip_addr", "opa.runtime"}

// maxFile bounds one file of a folder of rules, in bytes.
const maxFile = 1 << 20

// Load compiles every *.rego file of a folder and those below it, without those whose
// name ends in _test.rego. A data.json or data.yaml beside the rules is their data, at
// its root. The error of a file that does not compile names file and line; a folder
// without any deny or warn is an error, since it would pass everything.
func Load(folder fs.FS) (*Rules, error) {
	r := &Rules{data: document{}}
	modules := map[string]*ast.Module{}
	names, err := inputs(folder)
	for _, name := range names {
		if err != nil {
			break
		}
		if strings.HasSuffix(name, ".rego") {
			err = parse(folder, name, modules)
		} else {
			err = r.read(folder, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load policies: %w", err)
	}
	r.compiler = ast.NewCompiler().WithCapabilities(confined())
	if r.compiler.Compile(modules); r.compiler.Failed() {
		return nil, fmt.Errorf("load policies: %w", r.compiler.Errors)
	}
	if r.verdicts = verdictsOf(modules); len(r.verdicts) == 0 {
		return nil, errors.New("load policies: no rule named deny or warn in any *.rego file, so nothing would ever be refused; write `deny contains msg if { … }`")
	}
	return r, nil
}

// Digest tells folders of rules apart by what Load reads of them, without compiling
// anything. The errors are those of reading.
func Digest(folder fs.FS) (string, error) {
	names, err := inputs(folder)
	if err != nil {
		return "", fmt.Errorf("read policies: %w", err)
	}
	sum := sha256.New()
	for _, name := range names {
		text, err := content(folder, name)
		if err != nil {
			return "", fmt.Errorf("read policies: %w", err)
		}
		_, _ = fmt.Fprintf(sum, "%q %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// inputs are the files of a folder that Load reads, in the order of their names.
func inputs(folder fs.FS) ([]string, error) {
	var out []string
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		base := path.Base(name)
		rules := strings.HasSuffix(base, ".rego") && !strings.HasSuffix(base, "_test.rego")
		if rules || base == "data.json" || base == "data.yaml" {
			out = append(out, name)
		}
		return nil
	})
	return out, err
}

func content(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", name, info.Size(), maxFile)
	}
	return fs.ReadFile(folder, name)
}

func parse(folder fs.FS, name string, into map[string]*ast.Module) error {
	text, err := content(folder, name)
	if err != nil {
		return err
	}
	m, err := ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return err
	}
	into[name] = m
	return nil
}

// read takes a data file in. One file alone is data: two would hide each other.
func (r *Rules) read(folder fs.FS, name string) error {
	if len(r.data) > 0 {
		return fmt.Errorf("%s: there is another data file; keep one", name)
	}
	text, err := content(folder, name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, &r.data); err != nil { // which reads JSON too
		return fmt.Errorf("%s: %w", name, err)
	}
	r.data, err = plain(r.data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// plain turns what YAML made into what JSON would have made.
func plain(d document) (document, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	out := document{}
	return out, json.Unmarshal(text, &out)
}

// confined are this version's builtins without those that reach outside.
func confined() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool { return slices.Contains(barred, b.Name) })
	c.AllowNet = []string{}
	return c
}

// verdictsOf finds the sets that say something, in an order that two runs agree upon.
func verdictsOf(modules map[string]*ast.Module) []query {
	found := map[query]struct{}{}
	for _, m := range modules {
		for _, rule := range m.Rules {
			name := rule.Head.Ref()[0].String()
			if name == string(Deny) || name == string(Warn) {
				found[query{ref: m.Package.Path.String() + "." + name, severity: Severity(name)}] = struct{}{}
			}
		}
	}
	out := make([]query, 0, len(found))
	for q := range found {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b query) int { return strings.Compare(a.ref, b.ref) })
	return out
}
