package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/gofrs/flock"
)

// mostHaves bounds what is told to a remote about what is here already.
const mostHaves = 256

// mirror keeps a bare repository with the remote's branches and tags, and those other
// refs (pull requests) that were asked for. Refs follow the remote by force, and go
// when they go there. It is used by one call at a time, also among processes.
type mirror struct {
	remote *remote
	dir    string
	busy   chan struct{} // holds one token while a call is inside
}

func newMirror(r *remote, name string) *mirror {
	return &mirror{remote: r, dir: filepath.Join(r.options.Store.Folder, name+".git"), busy: make(chan struct{}, 1)}
}

// with fetches what is missing and lends the mirror. One that turns out damaged is made
// anew, once.
func (m *mirror) with(ctx context.Context, c *call, ask want, fn func(storage.Storer) error) error {
	release, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	m.sweep()
	err = m.once(ctx, c, ask, fn)
	if damage := (*broken)(nil); errors.As(err, &damage) && ctx.Err() == nil {
		if err := m.discard(); err != nil {
			return err
		}
		err = m.once(ctx, c, ask, fn)
	}
	return err
}

// lock waits for the other calls of this process and for other processes.
func (m *mirror) lock(ctx context.Context) (release func(), err error) {
	select {
	case m.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("the mirror of %s is in use by another call: %w", m.remote.name, ctx.Err())
	}
	file := flock.New(m.dir + ".lock")
	ok, err := file.TryLockContext(ctx, 50*time.Millisecond)
	if err != nil || !ok {
		_ = file.Close()
		<-m.busy
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the mirror of %s is in use by another process, which holds %s: %w", m.remote.name, m.dir+".lock", ctx.Err())
		}
		return nil, fmt.Errorf("the mirror of %s cannot be locked: %w", m.remote.name, err)
	}
	return func() {
		_ = file.Close()
		<-m.busy
	}, nil
}

// sweep removes what a killed process has left half: a new mirror, a pack that was
// being received, an index without its pack.
func (m *mirror) sweep() {
	for _, pattern := range []string{m.dir + ".new-*", m.dir + ".old-*", filepath.Join(m.dir, "objects", "pack", "tmp_*")} {
		left, _ := filepath.Glob(pattern) // the patterns are fixed
		for _, path := range left {
			_ = os.RemoveAll(path)
		}
	}
	indexes, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.idx"))
	for _, index := range indexes {
		if _, err := os.Stat(strings.TrimSuffix(index, ".idx") + ".pack"); errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(index)
		}
	}
}

// discard takes the mirror away at once, then removes it.
func (m *mirror) discard() error {
	old := m.dir + fmt.Sprintf(".old-%d", time.Now().UnixNano())
	if err := os.Rename(m.dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}

// once lends the mirror, after a fetch when it does not have what is asked for.
func (m *mirror) once(ctx context.Context, c *call, ask want, fn func(storage.Storer) error) error {
	store, refs, err := m.open()
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }()
		if m.has(refs, ask) {
			return fn(store)
		}
	}
	fetched, refs, err := m.fetch(ctx, c, ask, store, refs)
	if err != nil {
		return err
	}
	defer func() { _ = fetched.Close() }()
	if err := m.reachable(ctx, fetched, refs, ask); err != nil {
		return err
	}
	return fn(fetched)
}

// open opens the mirror; without one, or with one of too many packs, there is none.
func (m *mirror) open() (*filesystem.Storage, map[string]plumbing.Hash, error) {
	packs, _ := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack")) // the pattern is fixed
	if len(packs) > m.remote.limits.Packs {
		return nil, nil, m.discard()
	}
	text, err := os.ReadFile(filepath.Join(m.dir, "packed-refs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, m.discard() // a mirror has its refs from the start
	}
	if err != nil {
		return nil, nil, err
	}
	refs, err := parseRefs(text)
	if err != nil {
		return nil, nil, &broken{err}
	}
	return openStore(m.dir), refs, nil
}

// has says whether all that is asked for is at refs of the mirror: then the remote
// need not be asked. Where it has moved on meanwhile, that is as if this read had come a
// moment earlier, and the next list of refs tells.
func (m *mirror) has(refs map[string]plumbing.Hash, ask want) bool {
	if ask.tag.Tag != "" && refs[ask.tag.Ref].String() != ask.tag.Tag {
		return false
	}
	at := map[plumbing.Hash]bool{}
	for _, id := range refs {
		at[id] = true
	}
	for _, id := range ask.commits {
		if !at[id] && (ask.tag.Tag == "" || ask.tag.Commit != id.String()) {
			return false
		}
	}
	return true
}

// fetch brings the mirror up to date. Objects come first, then all refs at once, so
// that a ref never names what is not there.
func (m *mirror) fetch(ctx context.Context, c *call, ask want, store *filesystem.Storage, before map[string]plumbing.Hash) (*filesystem.Storage, map[string]plumbing.Hash, error) {
	session, adv, err := m.remote.connect(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = session.Close() }()
	if moved(adv, ask.tag) {
		return nil, nil, goneTag(ask.tag)
	}
	dir, fresh := m.dir, store == nil
	if fresh {
		if dir, err = os.MkdirTemp(filepath.Dir(m.dir), filepath.Base(m.dir)+".new-*"); err != nil {
			return nil, nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		store = openStore(dir)
		defer func(made *filesystem.Storage) { _ = made.Close() }(store)
		if _, err := git.Init(store, nil); err != nil {
			return nil, nil, err
		}
	}
	refs := followed(adv, before, ask)
	var wants []plumbing.Hash
	for _, id := range refs {
		if !has(store, id) {
			wants = append(wants, id)
		}
	}
	if len(wants) > 0 {
		if err := m.remote.pull(ctx, c, session, adv, store, unique(wants), m.haves(store, before), 0); err != nil {
			return nil, nil, err
		}
	}
	if err := writeRefs(dir, refs); err != nil {
		return nil, nil, err
	}
	if fresh {
		if err := os.Rename(dir, m.dir); err != nil {
			return nil, nil, err
		}
	}
	return openStore(m.dir), refs, nil
}

// followed are the refs that the mirror has after a fetch: branches, tags, those others
// that it had and that are still there, and those at an asked commit.
func followed(adv *packp.AdvRefs, before map[string]plumbing.Hash, ask want) map[string]plumbing.Hash {
	refs := map[string]plumbing.Hash{}
	for name, id := range adv.References {
		if !strings.HasPrefix(name, "refs/") || plumbing.ReferenceName(name).Validate() != nil {
			continue
		}
		_, had := before[name]
		if had || strings.HasPrefix(name, branches) || strings.HasPrefix(name, tags) || slices.Contains(ask.commits, id) {
			refs[name] = id
		}
	}
	return refs
}

// haves are commits that are here, from the refs backwards: a remote whose branch was
// rewritten knows the older ones.
func (m *mirror) haves(store storage.Storer, refs map[string]plumbing.Hash) []plumbing.Hash {
	seen := map[plumbing.Hash]bool{}
	queue := unique(slices.Collect(maps.Values(refs)))
	var haves []plumbing.Hash
	for len(queue) > 0 && len(haves) < mostHaves {
		id := queue[0]
		queue = queue[1:]
		c, err := readCommit(store, id)
		if seen[id] || err != nil { // not a commit, or not there: it is no help
			continue
		}
		seen[id] = true
		haves = append(haves, id)
		queue = append(queue, c.parents...)
	}
	return haves
}

// reachable says whether each asked commit is in the history of a ref; else *Gone.
func (m *mirror) reachable(ctx context.Context, store storage.Storer, refs map[string]plumbing.Hash, ask want) error {
	if m.has(refs, ask) {
		return nil
	}
	missing := map[plumbing.Hash]bool{}
	for _, id := range ask.commits {
		if !has(store, id) {
			return &Gone{Commit: id.String(), Why: m.remote.name + " has it in no ref; the ref has moved or was deleted"}
		}
		missing[id] = true
	}
	var from []plumbing.Hash
	for _, id := range unique(slices.Collect(maps.Values(refs))) {
		if peeled, err := peel(store, id); err != nil {
			return err
		} else if peeled != plumbing.ZeroHash {
			from = append(from, peeled)
		}
	}
	found := errors.New("found")
	err := walk(ctx, store, from, func(id plumbing.Hash) error {
		if delete(missing, id); len(missing) == 0 {
			return found
		}
		return nil
	})
	if err == nil {
		for _, id := range ask.commits {
			if missing[id] {
				return &Gone{Commit: id.String(), Why: "no ref of " + m.remote.name + " has it any more; the ref has moved or was deleted"}
			}
		}
	}
	if errors.Is(err, found) {
		return nil
	}
	return err
}

// peel follows tags to a commit; zero when there is none at their end.
func peel(store storage.Storer, id plumbing.Hash) (plumbing.Hash, error) {
	for range 16 {
		o, err := store.EncodedObject(plumbing.AnyObject, id)
		switch {
		case err != nil:
			return plumbing.ZeroHash, &broken{err}
		case o.Type() == plumbing.CommitObject:
			return id, nil
		case o.Type() != plumbing.TagObject:
			return plumbing.ZeroHash, nil
		}
		raw, err := readObject(store, id, plumbing.TagObject)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		t, err := parseTag(raw)
		if err != nil {
			return plumbing.ZeroHash, nil //nolint:nilerr // a tag that cannot be read leads nowhere
		}
		id = t.object
	}
	return plumbing.ZeroHash, nil
}

// writeRefs replaces all refs at once.
func writeRefs(dir string, refs map[string]plumbing.Hash) error {
	var text bytes.Buffer
	text.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&text, "%s %s\n", refs[name], name)
	}
	part := filepath.Join(dir, "packed-refs.new")
	if err := os.WriteFile(part, text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(dir, "packed-refs"))
}

func parseRefs(text []byte) (map[string]plumbing.Hash, error) {
	refs := map[string]plumbing.Hash{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok || !fullID.MatchString(id) {
			return nil, errors.New("its list of refs cannot be read")
		}
		refs[name] = plumbing.NewHash(id)
	}
	return refs, nil
}

func unique(ids []plumbing.Hash) []plumbing.Hash {
	slices.SortFunc(ids, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}
