package gitsource

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// merger reads what merging head into base would give. Renames are not looked for: a
// file that one side moved and the other changed is a conflict, never a guess.
type merger struct {
	store  storer.EncodedObjectStorer
	watch  watch
	limits Limits
	base   rawCommit
	head   rawCommit
}

// merge computes the merge result. With several merge bases all of them must give the
// same result, else it is a conflict.
func (m *merger) merge(ctx context.Context) (Snapshot, error) {
	bases, err := m.bases()
	if err != nil {
		return Snapshot{}, err
	}
	if len(bases) == 0 {
		return Snapshot{}, &Conflict{Base: m.base.id.String(), Head: m.head.id.String(), Why: "they have no commit in common"}
	}
	var first Snapshot
	for i, b := range bases {
		next, err := m.over(ctx, b)
		if err != nil {
			return Snapshot{}, err
		}
		if i == 0 {
			first = next
		} else if files := differing(first.Files, next.Files); len(files) > 0 {
			return Snapshot{}, m.conflict(files)
		}
	}
	return first, nil
}

func (m *merger) conflict(files []string) error {
	return &Conflict{Base: m.base.id.String(), Head: m.head.id.String(), Files: files}
}

// bases are the trees of the merge bases.
func (m *merger) bases() ([]plumbing.Hash, error) {
	ours, err := object.GetCommit(m.store, m.base.id)
	if err != nil {
		return nil, &broken{err}
	}
	theirs, err := object.GetCommit(m.store, m.head.id)
	if err != nil {
		return nil, &broken{err}
	}
	found, err := ours.MergeBase(theirs)
	if err != nil {
		return nil, &broken{err}
	}
	var trees []plumbing.Hash
	for _, c := range found {
		raw, err := readCommit(m.store, c.Hash)
		if err != nil {
			return nil, err
		}
		trees = append(trees, raw.tree)
	}
	slices.SortFunc(trees, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(trees), nil
}

// over merges with one merge base.
func (m *merger) over(ctx context.Context, baseTree plumbing.Hash) (Snapshot, error) {
	var sides [3]map[string]entry
	var out listing
	for i, tree := range []plumbing.Hash{baseTree, m.base.tree, m.head.tree} {
		l, err := list(ctx, m.store, tree, m.watch, m.limits.Entries)
		if err != nil {
			return Snapshot{}, err
		}
		sides[i] = map[string]entry{}
		for _, e := range l.entries {
			sides[i][e.path] = e
		}
		if i > 0 { // what only the merge base had is gone from both
			out.refused = append(out.refused, l.refused...)
		}
	}
	merged, conflicts, err := m.entries(sides, &out)
	if err != nil {
		return Snapshot{}, err
	}
	conflicts = append(conflicts, underFiles(out.entries)...)
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return Snapshot{}, m.conflict(slices.Compact(conflicts))
	}
	r := &reader{store: m.store, limits: m.limits, merged: merged}
	if err := r.read(ctx, out); err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Commit: m.head.commit(), Files: r.files, Refused: r.refuse}, nil
}

// entries decides path by path. merged has the contents that no blob has.
func (m *merger) entries(sides [3]map[string]entry, out *listing) (merged map[string][]byte, conflicts []string, err error) {
	merged = map[string][]byte{}
	paths := map[string]bool{}
	for _, side := range sides {
		for p := range side {
			paths[p] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		base, inBase := sides[0][p]
		ours, inOurs := sides[1][p]
		theirs, inTheirs := sides[2][p]
		alike := func(a entry, inA bool, b entry, inB bool) bool { return inA == inB && a.same(b) }
		switch {
		case alike(ours, inOurs, theirs, inTheirs), alike(base, inBase, theirs, inTheirs):
			if inOurs {
				out.entries = append(out.entries, ours)
			}
		case alike(base, inBase, ours, inOurs):
			if inTheirs {
				out.entries = append(out.entries, theirs)
			}
		default:
			content, ok := []byte(nil), inOurs && inTheirs
			if ok {
				content, ok, err = m.content(base, inBase, ours, theirs)
			}
			if err != nil {
				return nil, nil, err
			}
			if !ok {
				conflicts = append(conflicts, printable(p))
				continue
			}
			merged[p] = content
			out.entries = append(out.entries, entry{p, filemode.Regular, plumbing.ComputeHash(plumbing.BlobObject, content)})
		}
	}
	return merged, conflicts, nil
}

// content merges one file that both sides changed. A file that both added has an empty
// base, as in Git.
func (m *merger) content(base entry, inBase bool, ours, theirs entry) ([]byte, bool, error) {
	var texts [3][]byte
	for i, e := range []entry{base, ours, theirs} {
		if i == 0 && !inBase {
			continue
		}
		if e.kind() != filemode.Regular {
			return nil, false, nil
		}
		o, err := m.store.EncodedObject(plumbing.BlobObject, e.hash)
		if err != nil {
			return nil, false, &broken{err}
		}
		if o.Size() > m.limits.FileBytes {
			return nil, false, nil
		}
		if texts[i], err = contents(o, e.hash); err != nil {
			return nil, false, &broken{err}
		}
	}
	merged, ok := merge3(texts[0], texts[1], texts[2])
	return merged, ok, nil
}

// underFiles are paths below a path that is a file.
func underFiles(entries []entry) []string {
	files := map[string]bool{}
	for _, e := range entries {
		files[e.path] = true
	}
	var wrong []string
	for _, e := range entries {
		for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				wrong = append(wrong, printable(e.path))
			}
		}
	}
	return wrong
}

// differing are the paths that two sets of files do not agree on.
func differing(a, b []File) []string {
	blobs := map[string]string{}
	for _, f := range a {
		blobs[f.Path] = f.Blob
	}
	var wrong []string
	for _, f := range b {
		if blobs[f.Path] != f.Blob {
			wrong = append(wrong, printable(f.Path))
		}
		delete(blobs, f.Path)
	}
	for p := range blobs {
		wrong = append(wrong, printable(p))
	}
	slices.SortFunc(wrong, strings.Compare)
	return wrong
}

// isAncestor says whether one commit is in the history of another.
func isAncestor(ctx context.Context, store storer.EncodedObjectStorer, old, of plumbing.Hash) (bool, error) {
	found := errors.New("found")
	err := walk(ctx, store, []plumbing.Hash{of}, func(id plumbing.Hash) error {
		if id == old {
			return found
		}
		return nil
	})
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}
