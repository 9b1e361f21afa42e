package reconciler

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
)

var emptyBody = &hclsyntax.Body{}

// LoadConfig reads and checks a configuration file. The configuration is to be used only
// when the diagnostics have no error; they tell all that is wrong, not the first of it,
// and warn of what may be meant otherwise, such as a secret that others can read.
func LoadConfig(path string) (Config, declaration.Diagnostics) {
	source, err := readConfig(path)
	if err != nil {
		return Config{}, declaration.Diagnostics{{Severity: declaration.Error, Summary: "Cannot read the configuration " + path, Detail: err.Error()}}
	}
	return parseConfig(declaration.File{Name: path, Bytes: source}, filepath.Dir(path))
}

func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, declaration.LargestFile+1))
}

// parseConfig reads a file's text; relative paths in it are from a folder.
func parseConfig(f declaration.File, folder string) (Config, declaration.Diagnostics) {
	body, found := declaration.Parse(f)
	if body == nil || found.HasErrors() {
		return Config{}, found
	}
	d := newDecoder(folder)
	c := d.decode(d.top(body))
	d.check(c)
	for i, one := range d.found { // what has no place in the file is about the whole of it
		if one.Range.Filename == "" {
			d.found[i].Range = hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.InitialPos}
		}
	}
	return c, masked(append(found, d.found...).Placed(map[string][]byte{f.Name: f.Bytes}))
}

// secretInFile is the summary of diagnostics whose line nobody is to read in a log.
const secretInFile = "A secret in the file"

// masked hides what stands behind the first equals sign of lines that hold a secret.
func masked(found declaration.Diagnostics) declaration.Diagnostics {
	lines := map[int]bool{}
	for _, d := range found {
		lines[d.Range.Start.Line] = lines[d.Range.Start.Line] || d.Summary == secretInFile
	}
	for i, d := range found {
		if before, _, ok := strings.Cut(d.Line, "="); ok && lines[d.Range.Start.Line] {
			found[i].Line = before + "= …"
		}
	}
	return found
}

func newDecoder(folder string) *decoder {
	return &decoder{folder: folder, now: time.Now(), places: map[string]hcl.Range{}, nested: map[StackKey]bool{}}
}
