package gitsource

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage"
)

// shallow fetches into an empty folder that is removed afterwards.
type shallow struct {
	remote *remote
	prefix string
}

// newShallow removes what a process that was killed has left; what is younger than a
// day may be in use.
func newShallow(r *remote, name string) (*shallow, error) {
	s := &shallow{remote: r, prefix: filepath.Join(r.options.Store.Folder, name+".shallow-")}
	left, err := filepath.Glob(s.prefix + "*")
	if err != nil {
		return nil, err
	}
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(dir)
		}
	}
	return s, nil
}

// with fetches the asked commits, which must each be at a ref: a server that would
// hand out others may hand out some that no ref of this repository has.
func (s *shallow) with(ctx context.Context, c *call, ask want, fn func(storage.Storer) error) error {
	session, adv, err := s.remote.connect(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	at := tips(adv)
	wants := append([]plumbing.Hash{}, ask.commits...)
	for _, id := range ask.commits {
		if len(at[id]) == 0 {
			return &Gone{Commit: id.String(), Why: "it is at no ref of " + s.remote.name + "; the ref has moved, or it is an older commit, which needs the store \"mirror\""}
		}
	}
	if moved(adv, ask.tag) {
		return goneTag(ask.tag)
	}
	if ask.tag.Tag != "" {
		wants = []plumbing.Hash{plumbing.NewHash(ask.tag.Tag)} // the commit comes with it
	}
	dir, err := os.MkdirTemp(filepath.Dir(s.prefix), filepath.Base(s.prefix)+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store := openStore(dir)
	defer func() { _ = store.Close() }()
	if _, err := git.Init(store, nil); err != nil {
		return err
	}
	depth := 1
	if ask.history == whole {
		depth = 0
	}
	if err := s.remote.pull(ctx, c, session, adv, store, unique(wants), nil, depth); err != nil {
		return err
	}
	return fn(store)
}
