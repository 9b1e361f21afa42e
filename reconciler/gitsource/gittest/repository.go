package gittest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/stretchr/testify/require"
)

// Repository is a bare repository of a server. HEAD points at refs/heads/main. Its
// methods fail the test when they cannot do what they say.
type Repository struct {
	Name string // owner/name
	Path string // the bare repository on disk

	server *Server
	mu     sync.Mutex
	store  *filesystem.Storage
	now    time.Time
	trees  map[string]map[string]object.TreeEntry // by commit, then by path
}

// Repository makes an empty one.
func (s *Server) Repository(name string) *Repository {
	s.t.Helper()
	r := &Repository{server: s, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), trees: map[string]map[string]object.TreeEntry{}}
	dir := filepath.Join(s.root, filepath.FromSlash(name)+".git")
	require.NoError(s.t, os.MkdirAll(dir, 0o755))
	r.open(name, dir)
	_, err := git.Init(r.store, nil)
	require.NoError(s.t, err)
	require.NoError(s.t, r.store.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main")))
	return r
}

func (r *Repository) open(name, dir string) {
	r.Name, r.Path = name, dir
	r.store = filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRU(cache.MiByte))
}

// URL is the repository's address over HTTP.
func (r *Repository) URL() string { return r.server.URL + "/" + r.Name + ".git" }

// Spec says what a commit has. The zero value of a field leaves it as it is.
type Spec struct {
	Branch  string            // that moves to it; empty for none
	Parents []string          // default: the branch's commit
	Files   map[string]string // path to content, put over the first parent's
	Remove  []string          // paths
	Entries []Entry           // links, submodules, modes, further blobs
	Tree    string            // a tree made by Tree, in place of all files
	Message string            // default "change"
	At      time.Time         // default: a minute after the one before
	Sign    Signer
}

// Entry is a tree entry that is not a plain file.
type Entry struct {
	Path   string
	Mode   filemode.FileMode
	Target string // content: of a symbolic link where it leads, of a submodule its commit
}

// Commit puts files over what a branch has and moves it on.
func (r *Repository) Commit(branch string, files map[string]string) string {
	r.server.t.Helper()
	return r.Make(Spec{Branch: branch, Files: files})
}

// Make makes a commit and returns its id.
func (r *Repository) Make(s Spec) string {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Parents == nil && s.Branch != "" {
		if ref, err := r.store.Reference(plumbing.NewBranchReferenceName(s.Branch)); err == nil {
			s.Parents = []string{ref.Hash().String()}
		}
	}
	tree := map[string]object.TreeEntry{}
	if len(s.Parents) > 0 {
		maps.Copy(tree, r.trees[s.Parents[0]])
	}
	for p, content := range s.Files {
		tree[p] = object.TreeEntry{Mode: filemode.Regular, Hash: r.object(plumbing.BlobObject, []byte(content))}
	}
	for _, p := range s.Remove {
		delete(tree, p)
	}
	for _, e := range s.Entries {
		id := plumbing.NewHash(e.Target)
		if e.Mode != filemode.Submodule {
			id = r.object(plumbing.BlobObject, []byte(e.Target))
		}
		tree[e.Path] = object.TreeEntry{Mode: e.Mode, Hash: id}
	}
	root := plumbing.NewHash(s.Tree)
	if s.Tree == "" {
		root = r.tree(tree)
	}
	id := r.object(plumbing.CommitObject, r.commit(s, root)).String()
	r.trees[id] = tree
	if s.Branch != "" {
		r.ref("refs/heads/"+s.Branch, id)
	}
	return id
}

// commit is a commit's bytes, signed when asked for.
func (r *Repository) commit(s Spec, root plumbing.Hash) []byte {
	r.now = r.now.Add(time.Minute)
	at := s.At
	if at.IsZero() {
		at = r.now
	}
	if s.Message == "" {
		s.Message = "change"
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "tree %s\n", root)
	for _, p := range s.Parents {
		fmt.Fprintf(&head, "parent %s\n", p)
	}
	who := fmt.Sprintf("Ada Example <ada@example.com> %d +0000", at.Unix())
	fmt.Fprintf(&head, "author %s\ncommitter %s\n", who, who)
	message := "\n" + s.Message + "\n"
	if s.Sign == nil {
		return append(head.Bytes(), message...)
	}
	signature := strings.TrimSuffix(s.Sign(append(bytes.Clone(head.Bytes()), message...)), "\n")
	fmt.Fprintf(&head, "gpgsig %s\n", strings.ReplaceAll(signature, "\n", "\n "))
	return append(head.Bytes(), message...)
}

// tree writes nested trees and returns the root.
func (r *Repository) tree(files map[string]object.TreeEntry) plumbing.Hash {
	var entries []object.TreeEntry
	folders := map[string]map[string]object.TreeEntry{}
	for p, e := range files {
		folder, rest, nested := strings.Cut(p, "/")
		if !nested {
			entries = append(entries, object.TreeEntry{Name: p, Mode: e.Mode, Hash: e.Hash})
			continue
		}
		if folders[folder] == nil {
			folders[folder] = map[string]object.TreeEntry{}
		}
		folders[folder][rest] = e
	}
	for name, inside := range folders {
		entries = append(entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: r.tree(inside)})
	}
	return r.rawTree(entries)
}

// rawTree writes one tree object in Git's order, whatever its names are.
func (r *Repository) rawTree(entries []object.TreeEntry) plumbing.Hash {
	slices.SortStableFunc(entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	var raw bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&raw, "%o %s\x00", uint32(e.Mode), e.Name)
		raw.Write(e.Hash[:])
	}
	return r.object(plumbing.TreeObject, raw.Bytes())
}

func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// Tree writes one tree object of any entries, also such as no client would make, and
// returns its id.
func (r *Repository) Tree(entries ...object.TreeEntry) string {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rawTree(entries).String()
}

// Blob writes a blob and returns its id.
func (r *Repository) Blob(content string) plumbing.Hash {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.object(plumbing.BlobObject, []byte(content))
}

// Raw writes an object of any bytes and returns its id.
func (r *Repository) Raw(kind plumbing.ObjectType, raw []byte) string {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.object(kind, raw).String()
}

// Bytes are those of an object.
func (r *Repository) Bytes(id string) []byte {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	o, err := r.store.EncodedObject(plumbing.AnyObject, plumbing.NewHash(id))
	require.NoError(r.server.t, err)
	from, err := o.Reader()
	require.NoError(r.server.t, err)
	var all bytes.Buffer
	_, err = all.ReadFrom(from)
	require.NoError(r.server.t, err)
	require.NoError(r.server.t, from.Close())
	return all.Bytes()
}

func (r *Repository) object(kind plumbing.ObjectType, raw []byte) plumbing.Hash {
	r.server.t.Helper()
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, err := o.Write(raw)
	require.NoError(r.server.t, err)
	id, err := r.store.SetEncodedObject(o)
	require.NoError(r.server.t, err)
	return id
}

// ForcePush sets a branch to a commit, whatever it was.
func (r *Repository) ForcePush(branch, commit string) { r.SetRef("refs/heads/"+branch, commit) }

// DeleteBranch removes a branch.
func (r *Repository) DeleteBranch(branch string) { r.DeleteRef("refs/heads/" + branch) }

// SetRef sets any ref, such as refs/pull/7/head.
func (r *Repository) SetRef(ref, id string) {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ref(ref, id)
}

func (r *Repository) ref(ref, id string) {
	r.server.t.Helper()
	require.NoError(r.server.t, r.store.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(ref), plumbing.NewHash(id))))
}

// DeleteRef removes any ref.
func (r *Repository) DeleteRef(ref string) {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NoError(r.server.t, r.store.RemoveReference(plumbing.ReferenceName(ref)))
}

// SetHEAD lets HEAD point at a branch.
func (r *Repository) SetHEAD(branch string) {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NoError(r.server.t, r.store.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(branch))))
}

// Tag sets a lightweight tag; it also moves one.
func (r *Repository) Tag(name, commit string) { r.SetRef("refs/tags/"+name, commit) }

// AnnotatedTag makes a tag object, signed when a signer is given, and sets or moves the
// tag to it. It returns the object's id.
func (r *Repository) AnnotatedTag(name, commit string, sign Signer) string {
	r.server.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(time.Minute)
	raw := fmt.Appendf(nil, "object %s\ntype commit\ntag %s\ntagger Ada Example <ada@example.com> %d +0000\n\nrelease\n", commit, name, r.now.Unix())
	if sign != nil {
		raw = append(raw, sign(bytes.Clone(raw))...)
	}
	id := r.object(plumbing.TagObject, raw).String()
	r.ref("refs/tags/"+name, id)
	return id
}
