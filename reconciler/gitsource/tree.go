package gitsource

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

const (
	deepest     = 64       // folders in folders
	treeBytes   = 16 << 20 // of one tree object
	mostRefused = 10_000
)

// entry is one watched path of a tree that is not a folder.
type entry struct {
	path string
	mode filemode.FileMode
	hash plumbing.Hash
}

// same tells whether two entries have one content. The executable bit is none of it.
func (e entry) same(o entry) bool { return e.hash == o.hash && e.kind() == o.kind() }

func (e entry) kind() filemode.FileMode {
	if e.mode == filemode.Executable || e.mode == filemode.Deprecated {
		return filemode.Regular
	}
	return e.mode
}

// refusal says why an entry is no file to read; empty for a file.
func (e entry) refusal() string {
	switch e.kind() {
	case filemode.Regular:
		return ""
	case filemode.Symlink:
		return "is a symbolic link"
	case filemode.Submodule:
		return "is a submodule"
	default:
		return fmt.Sprintf("has the unknown mode %s", e.mode)
	}
}

// listing is what a tree holds of the watched paths. A folder that cannot be looked
// into is refused as one, so that its files do not look removed.
type listing struct {
	entries []entry // by path
	refused []Refusal
}

// lister walks trees.
type lister struct {
	store   storer.EncodedObjectStorer
	watch   watch
	left    int // entries that may still be looked at
	most    int
	listing listing
}

// list walks a commit's tree without following anything.
func list(ctx context.Context, store storer.EncodedObjectStorer, tree plumbing.Hash, w watch, most int) (listing, error) {
	l := &lister{store: store, watch: w, left: most, most: most}
	if err := l.walk(ctx, tree, "", 0); err != nil {
		return listing{}, err
	}
	slices.SortFunc(l.listing.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return l.listing, nil
}

func (l *lister) walk(ctx context.Context, hash plumbing.Hash, folder string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n, err := l.store.EncodedObjectSize(hash); err != nil {
		return &broken{err}
	} else if n > treeBytes {
		return &TooMuch{What: "the folder " + name(folder), Limit: size(treeBytes)}
	}
	tree, err := object.GetTree(l.store, hash)
	if err != nil {
		return &broken{err}
	}
	if l.left -= len(tree.Entries); l.left < 0 {
		return &TooMuch{What: "the trees of the commit", Limit: fmt.Sprintf("%d entries", l.most), Hint: "watch fewer folders"}
	}
	bad := wrongNames(tree.Entries)
	for i, e := range tree.Entries {
		path := e.Name
		if folder != "" {
			path = folder + "/" + e.Name
		}
		if err := l.visit(ctx, entry{path, e.Mode, e.Hash}, bad[i], depth); err != nil {
			return err
		}
	}
	return nil
}

// visit takes one entry of a folder.
func (l *lister) visit(ctx context.Context, e entry, wrong string, depth int) error {
	watched, maybe := l.watch.file(e.path), l.watch.below(e.path)
	switch {
	case !watched && !maybe:
		return nil
	case wrong != "":
		return l.refuse(e.path, wrong)
	case e.mode == filemode.Dir && !maybe:
		return nil
	case e.mode == filemode.Dir && depth >= deepest:
		return l.refuse(e.path, fmt.Sprintf("is more than %d folders deep", deepest))
	case e.mode == filemode.Dir:
		return l.walk(ctx, e.hash, e.path, depth+1)
	case watched || e.refusal() != "": // a link may hide a folder of watched files
		l.listing.entries = append(l.listing.entries, e)
	}
	return nil
}

func (l *lister) refuse(path, reason string) error {
	if len(l.listing.refused) >= mostRefused {
		return &TooMuch{What: "watched paths that are refused", Limit: fmt.Sprint(mostRefused)}
	}
	l.listing.refused = append(l.listing.refused, Refusal{printable(path), reason})
	return nil
}

// wrongNames says for each entry of one folder what is wrong with its name.
func wrongNames(entries []object.TreeEntry) []string {
	wrong := make([]string, len(entries))
	first := map[string]int{}
	for i, e := range entries {
		if wrong[i] = hostile(e.Name); wrong[i] != "" {
			continue
		}
		folded := strings.ToLower(strings.ToUpper(e.Name))
		j, ok := first[folded]
		if !ok {
			first[folded] = i
			continue
		}
		if entries[j].Name == e.Name {
			wrong[i], wrong[j] = "is in its folder twice", "is in its folder twice"
			continue
		}
		wrong[i] = "differs from " + entries[j].Name + " by upper and lower case only"
		if wrong[j] == "" {
			wrong[j] = "differs from " + e.Name + " by upper and lower case only"
		}
	}
	return wrong
}

// reader turns entries into files within the limits.
type reader struct {
	store  storer.EncodedObjectStorer
	limits Limits
	merged map[string][]byte // contents that are in no blob
	total  int64
	files  []File
	refuse []Refusal
}

// read reads what a listing holds. Which files are over a limit depends on their order
// by path alone.
func (r *reader) read(ctx context.Context, l listing) error {
	r.refuse = append(r.refuse, l.refused...)
	for _, e := range l.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		reason, err := r.one(e)
		if err != nil {
			return err
		}
		if reason == "" {
			continue
		}
		if len(r.refuse) >= mostRefused {
			return &TooMuch{What: "watched paths that are refused", Limit: fmt.Sprint(mostRefused)}
		}
		r.refuse = append(r.refuse, Refusal{printable(e.path), reason})
	}
	slices.SortFunc(r.refuse, func(a, b Refusal) int { return strings.Compare(a.Path, b.Path) })
	r.refuse = slices.Compact(r.refuse)
	return nil
}

func (r *reader) one(e entry) (refusal string, err error) {
	if why := e.refusal(); why != "" {
		return why, nil
	}
	content, merged := r.merged[e.path]
	var o plumbing.EncodedObject
	n := int64(len(content))
	if !merged {
		if o, err = r.store.EncodedObject(plumbing.AnyObject, e.hash); err != nil {
			return "", &broken{err}
		}
		if n = o.Size(); o.Type() != plumbing.BlobObject {
			return fmt.Sprintf("is a %s in the place of a file", o.Type()), nil
		}
	}
	switch {
	case n > r.limits.FileBytes:
		return fmt.Sprintf("has %s, more than %s", size(n), size(r.limits.FileBytes)), nil
	case len(r.files) >= r.limits.Files:
		return fmt.Sprintf("comes after the first %d watched files, which is the limit", r.limits.Files), nil
	case r.total+n > r.limits.TotalBytes:
		return fmt.Sprintf("would bring the watched files to more than %s", size(r.limits.TotalBytes)), nil
	}
	if !merged {
		if content, err = contents(o, e.hash); err != nil {
			return "", &broken{err}
		}
	}
	if bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/")) {
		return "is a Git LFS pointer", nil
	}
	r.total += n
	r.files = append(r.files, File{Path: e.path, Blob: e.hash.String(), Bytes: content})
	return "", nil
}

// contents reads an object and checks that its bytes have the id that was asked for.
func contents(o plumbing.EncodedObject, id plumbing.Hash) (_ []byte, err error) {
	from, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := from.Close(); err == nil {
			err = closed
		}
	}()
	content, err := io.ReadAll(io.LimitReader(from, o.Size()+1))
	if err != nil {
		return nil, err
	}
	if plumbing.ComputeHash(o.Type(), content) != id {
		return nil, fmt.Errorf("object %s has other bytes than its id says", id)
	}
	return content, nil
}

// broken is a store that does not hold what it should.
type broken struct{ error }

func (b *broken) Unwrap() error { return b.error }
func (b *broken) Error() string { return "the store of Git objects is damaged: " + b.error.Error() }

func name(folder string) string {
	if folder == "" {
		return "at the root"
	}
	return printable(folder)
}

// size is a number of bytes for people.
func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			if n%unit.bytes == 0 {
				return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
			}
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
