package reconciler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/sluice-dev/terraform-provider-sluice/internal/declaration"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// approvalsFile may stand in a stack's folder: a line for each digest of a plan that is
// approved in Git. It is no part of what is planned.
const approvalsFile = "sluice.approvals"

// desire reads the followed commit's files, when they are not the ones that are known.
// A ref that is not there leaves nothing desired: that is not an empty folder.
func (f *follower) desire(ctx context.Context) error {
	if f.source.Now.State != gitsource.Found {
		f.tree = nil
		return nil
	}
	if f.tree != nil && f.tree.Commit.ID == f.source.Now.Commit {
		return nil
	}
	f.tree = nil
	tree, err := f.remote.Read(ctx, f.source.Now)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", short(f.source.Now.Commit), f.config.Name, err)
	}
	f.tree = &tree
	f.share(tree)
	return nil
}

// folder is the files of one stack at one commit.
type folder struct {
	Commit    gitsource.Commit
	Files     []declaration.File
	Shared    []declaration.File // files of variables that stand elsewhere
	Refused   []gitsource.Refusal
	Approvals []string // of approvalsFile
	Elsewhere []string // folders that have files for a plan, when this one has none; at most ten
	Digest    string   // over names and blobs, the refused ones too
}

// folderOf picks a stack's files out of a tree: those that stand in its folder itself.
func folderOf(tree gitsource.Snapshot, c StackConfig) folder {
	out := folder{Commit: tree.Commit}
	sum := sha256.New()
	for _, file := range tree.Files {
		if path.Dir(file.Path) != path.Clean(c.Folder) {
			if c.sharesVariables(file.Path) {
				out.Shared = append(out.Shared, declaration.File{Name: file.Path, Bytes: file.Bytes})
				_, _ = fmt.Fprintf(sum, "%s\x00%s\n", file.Path, file.Blob)
			}
			continue
		}
		if path.Base(file.Path) == approvalsFile {
			out.Approvals = approvalLines(file.Bytes)
			continue
		}
		if !isInput(file.Path) {
			continue
		}
		out.Files = append(out.Files, declaration.File{Name: file.Path, Bytes: file.Bytes})
		_, _ = fmt.Fprintf(sum, "%s\x00%s\n", file.Path, file.Blob)
	}
	if len(out.Files) == 0 {
		out.Elsewhere = foldersOf(tree)
	}
	for _, r := range tree.Refused {
		if path.Dir(r.Path) == path.Clean(c.Folder) || c.sharesVariables(r.Path) || strings.HasPrefix(path.Clean(c.Folder)+"/", r.Path+"/") {
			out.Refused = append(out.Refused, r)
			_, _ = fmt.Fprintf(sum, "%s\x00!%s\n", r.Path, r.Reason)
		}
	}
	for _, v := range c.VarFiles {
		_, _ = fmt.Fprintf(sum, "var file %s\n", v)
	}
	writeSorted(sum, c.Variables)
	out.Digest = hex.EncodeToString(sum.Sum(nil))
	return out
}

// sharesVariables reports whether a path is one of the stack's files of variables.
func (c StackConfig) sharesVariables(name string) bool {
	return slices.ContainsFunc(c.VarFiles, func(v string) bool { return path.Join(c.Folder, v) == name })
}

// foldersOf are the folders of a tree that have files for a plan, at most ten.
func foldersOf(tree gitsource.Snapshot) []string {
	var out []string
	for _, file := range tree.Files {
		if dir := path.Dir(file.Path); isInput(file.Path) && !slices.Contains(out, dir) && len(out) < 10 {
			out = append(out, dir)
		}
	}
	return out
}

func writeSorted(w io.Writer, m map[string]string) {
	for _, k := range sortedKeys(m) {
		_, _ = fmt.Fprintf(w, "%s\x00%s\n", k, m[k])
	}
}

// isInput reports whether a file is one that a plan reads.
func isInput(name string) bool {
	base := path.Base(name)
	if strings.HasPrefix(base, ".") {
		return false
	}
	for _, end := range []string{".tf", ".tf.json", ".tfvars", ".tfvars.json"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return false
}

// approvalLines are the digests of a file: one a line, the first word, # for remarks.
func approvalLines(b []byte) []string {
	var out []string
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 && len(out) < 1000 {
			out = append(out, words[0])
		}
	}
	return out
}

// options are what the folder's meaning depends on besides its files.
func (o folder) options(c StackConfig) (declaration.Options, error) {
	var out declaration.Options
	for _, name := range c.VarFiles {
		full := path.Join(c.Folder, name)
		file, ok := o.file(full)
		if !ok {
			return out, fmt.Errorf("variable file %s: there is no such file in commit %s", full, short(o.Commit.ID))
		}
		out.Assign = append(out.Assign, declaration.Assignment{File: &file})
	}
	for _, k := range sortedKeys(c.Variables) {
		out.Assign = append(out.Assign, declaration.Assignment{Name: k, Text: c.Variables[k]})
	}
	return out, nil
}

func (o folder) file(name string) (declaration.File, bool) {
	for _, f := range slices.Concat(o.Files, o.Shared) {
		if f.Name == name {
			return f, true
		}
	}
	return declaration.File{}, false
}
