package declaration

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// File is one file of a folder: its name, as diagnostics are to show it, and its
// bytes.
type File struct {
	Name  string
	Bytes []byte
}

// readFolder reads the files of a folder that a declaration consists of, not those
// of folders below it. A link is followed inside the folder only.
func readFolder(report *reporter, dir string) []File {
	root, err := os.OpenRoot(dir)
	if err != nil {
		report.refuse(hcl.Range{}, "Cannot read the folder", err.Error(), "")
		return nil
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		report.refuse(hcl.Range{}, "Cannot read the folder", err.Error(), "")
		return nil
	}
	var out []File
	for _, e := range entries {
		if !isDeclaration(e.Name()) || e.IsDir() {
			continue
		}
		b, err := readFile(root, e.Name())
		if err != nil {
			report.refuse(hcl.Range{Filename: e.Name()}, "Cannot take this file", err.Error(), "")
			continue
		}
		out = append(out, File{Name: e.Name(), Bytes: b})
	}
	return out
}

// readFile reads one file. What it is, is looked at before it is opened: opening a
// pipe would wait for its other end.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		if strings.Contains(err.Error(), "escapes") {
			return nil, errors.New("it is a link that leads out of the folder")
		}
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is not a regular file (%s)", info.Mode().Type())
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, largestFile+1))
}

// isDeclaration reports whether Terraform would read a file. Hidden files and the
// leavings of editors are not read.
func isDeclaration(name string) bool {
	base := filepath.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") || strings.HasPrefix(base, "#") {
		return false
	}
	return isConfig(base) || isVariables(base)
}

func isConfig(name string) bool {
	return strings.HasSuffix(name, ".tf") || strings.HasSuffix(name, ".tf.json")
}

// isVariables reports whether a file's variables are taken without being asked for.
func isVariables(name string) bool {
	return name == "terraform.tfvars" || name == "terraform.tfvars.json" ||
		strings.HasSuffix(name, ".auto.tfvars") || strings.HasSuffix(name, ".auto.tfvars.json")
}

// admit checks files and returns those that may be parsed, by name.
func admit(report *reporter, files []File) []File {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if len(files) > mostFiles {
		report.refuse(hcl.Range{}, "Too many files", fmt.Sprintf("There are %d; at most %d are read.", len(files), mostFiles), "")
		return nil
	}
	var out []File
	total := 0
	for _, f := range files {
		total += len(f.Bytes)
		at := hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.InitialPos}
		switch {
		case len(f.Bytes) > largestFile:
			report.refuse(hcl.Range{Filename: f.Name}, "The file is too large", fmt.Sprintf("At most %d KiB are read.", largestFile>>10), "")
		case total > largestFolder:
			report.refuse(hcl.Range{Filename: f.Name}, "The folder is too large", fmt.Sprintf("At most %d MiB are read.", largestFolder>>20), "")
			return out
		case !utf8.Valid(f.Bytes):
			report.refuse(at, "The file is not UTF-8", "HCL is UTF-8 text.", "save it in that encoding")
		case strings.HasSuffix(f.Name, ".tf.json"):
			report.refuse(at, "Terraform's JSON syntax is not read here", "", "write it as HCL, or run this folder under Terraform")
		case isConfig(f.Name) && (filepath.Base(f.Name) == "override.tf" || strings.HasSuffix(f.Name, "_override.tf")):
			report.refuse(at, "Override files are merged by Terraform only", "", "put the values where they belong, or run this folder under Terraform")
		case !strings.HasSuffix(f.Name, ".json") && !withinLimits(report, f.Name, f.Bytes):
		default:
			out = append(out, f)
		}
	}
	return out
}
