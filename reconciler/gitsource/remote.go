package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	"github.com/go-git/go-git/v5/storage"
)

// remote is one repository behind go-git.
type remote struct {
	options  Options
	limits   Limits
	name     string // the address without secrets, for people
	endpoint *transport.Endpoint
	http     *http.Transport
	pins     *pins
	watch    watch
	verifier *verifier
	store    objects
	vault    vault
	dog      *watchdog
}

// objects keeps objects between fetching and reading them.
type objects interface {
	// with calls fn with a store that has the asked commits, and their histories as far
	// as it is asked for; *Gone when the remote has them at no ref.
	with(ctx context.Context, c *call, ask want, fn func(storage.Storer) error) error
}

// want is what is asked of a store.
type want struct {
	commits []plumbing.Hash
	tag     Resolved // whose tag object is wanted, when it has one
	history history
}

// history says how much of it is wanted.
type history int

const (
	tipOnly history = iota
	whole
)

// Open checks the options and returns the remote; the network is not asked yet.
func Open(o Options) (Remote, error) {
	ep, err := o.check()
	if err != nil {
		return nil, err
	}
	r := &remote{options: o, limits: o.Limits.orDefaults(), name: Redacted(o.URL), endpoint: ep, watch: newWatch(o.Include, o.Exclude)}
	r.dog = &watchdog{remote: r.name, most: int64(r.limits.Abandoned)}
	if r.http, err = newHTTP(o.CA); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	if ep.Protocol == "ssh" {
		if r.pins, err = newPins(o.Auth.SSH.KnownHosts); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if r.verifier, err = newVerifier(o.Verify); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	if r.store, err = newStore(r); err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	return r, nil
}

// Refs lists the remote's refs.
func (r *remote) Refs(ctx context.Context) (Refs, error) {
	refs, err := watched(ctx, r.dog, "listing the refs", func(ctx context.Context) (Refs, error) {
		c := &call{}
		s, adv, err := r.connect(ctx, c)
		if err != nil {
			return Refs{}, err
		}
		refs := refsOf(adv)
		c.mu.Lock()
		refs.Moved = c.moved
		c.mu.Unlock()
		return refs, s.Close()
	})
	return refs, r.vault.clean(err)
}

// Read reads the watched files of one commit.
func (r *remote) Read(ctx context.Context, at Resolved) (Snapshot, error) {
	if !fullID.MatchString(at.Commit) {
		return Snapshot{}, fmt.Errorf("%q is no commit to read", printable(at.Commit))
	}
	ask := want{commits: []plumbing.Hash{plumbing.NewHash(at.Commit)}, tag: at}
	s, err := watched(ctx, r.dog, "reading commit "+short(at.Commit), func(ctx context.Context) (out Snapshot, err error) {
		c := &call{}
		err = r.store.with(ctx, c, ask, func(store storage.Storer) error {
			out, err = r.snapshot(ctx, store, at)
			return err
		})
		return out, c.cause(err)
	})
	return s, r.vault.clean(err)
}

// snapshot verifies and then reads.
func (r *remote) snapshot(ctx context.Context, store storage.Storer, at Resolved) (Snapshot, error) {
	raw, err := readCommit(store, plumbing.NewHash(at.Commit))
	if err != nil {
		return Snapshot{}, err
	}
	signer, err := r.verifier.check(store, raw, at)
	if err != nil {
		return Snapshot{}, err
	}
	l, err := list(ctx, store, raw.tree, r.watch, r.limits.Entries)
	if err != nil {
		return Snapshot{}, err
	}
	files := &reader{store: store, limits: r.limits}
	if err := files.read(ctx, l); err != nil {
		return Snapshot{}, err
	}
	out := Snapshot{Commit: raw.commit(), Files: files.files, Refused: files.refuse}
	out.Commit.Signer = signer
	return out, nil
}

// Merge reads what merging head into base would give.
func (r *remote) Merge(ctx context.Context, base, head string) (Snapshot, error) {
	if !fullID.MatchString(base) || !fullID.MatchString(head) {
		return Snapshot{}, fmt.Errorf("%q and %q are no commits to merge", printable(base), printable(head))
	}
	ask := want{commits: []plumbing.Hash{plumbing.NewHash(base), plumbing.NewHash(head)}, history: whole}
	s, err := watched(ctx, r.dog, "merging "+short(head), func(ctx context.Context) (out Snapshot, err error) {
		c := &call{}
		err = r.store.with(ctx, c, ask, func(store storage.Storer) error {
			m := &merger{store: store, watch: r.watch, limits: r.limits}
			if m.base, err = readCommit(store, ask.commits[0]); err != nil {
				return err
			}
			if m.head, err = readCommit(store, ask.commits[1]); err != nil {
				return err
			}
			out, err = m.merge(ctx)
			return err
		})
		return out, c.cause(err)
	})
	return s, r.vault.clean(err)
}

// Log lists what "to" has and "from" has not.
func (r *remote) Log(ctx context.Context, from, to string, most int) (Log, error) {
	if !fullID.MatchString(to) || from != "" && !fullID.MatchString(from) {
		return Log{}, fmt.Errorf("%q and %q are no commits to compare", printable(from), printable(to))
	}
	ask := want{commits: []plumbing.Hash{plumbing.NewHash(to)}, history: whole}
	l, err := watched(ctx, r.dog, "reading the history of "+short(to), func(ctx context.Context) (out Log, err error) {
		c := &call{}
		err = r.store.with(ctx, c, ask, func(store storage.Storer) error {
			out, err = r.log(ctx, store, from, ask.commits[0], most)
			return err
		})
		return out, c.cause(err)
	})
	return l, r.vault.clean(err)
}

func (r *remote) log(ctx context.Context, store storage.Storer, from string, to plumbing.Hash, most int) (Log, error) {
	if from == "" {
		return all(ctx, store, to, most)
	}
	old := plumbing.NewHash(from)
	if has(store, old) {
		return since(ctx, store, old, to, most)
	}
	// The whole history of "to" is here and "from" is not, so it is none of it.
	log, err := all(ctx, store, to, most)
	log.Rewritten = true
	return log, err
}

// connect begins a session and reads what the remote offers. An empty repository is an
// advertisement without refs.
func (r *remote) connect(ctx context.Context, c *call) (transport.UploadPackSession, *packp.AdvRefs, error) {
	var s transport.UploadPackSession
	var err error
	switch r.endpoint.Protocol {
	case "ssh":
		s, err = r.dialSSH(ctx, c)
	case "file":
		s, err = file.DefaultClient.NewUploadPackSession(r.endpoint, nil)
	default:
		s, err = r.dialHTTP(ctx, c)
	}
	if err != nil {
		return nil, nil, c.cause(err)
	}
	adv, err := s.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return s, packp.NewAdvRefs(), nil
	}
	if err != nil {
		_ = s.Close()
		return nil, nil, r.deadline(ctx, c.cause(err))
	}
	return s, adv, nil
}

// deadline prefers the context's error to what a cut connection looks like.
func (r *remote) deadline(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		return fmt.Errorf("%s: %w", r.name, ctxErr)
	}
	return err
}

// refsOf reads an advertisement. Annotated tags are peeled.
func refsOf(adv *packp.AdvRefs) Refs {
	refs := Refs{Commits: map[string]string{}, Tags: map[string]string{}}
	for name, id := range adv.References {
		if !strings.HasPrefix(name, "refs/") || plumbing.ReferenceName(name).Validate() != nil {
			continue
		}
		refs.Commits[name] = id.String()
		if peeled, ok := adv.Peeled[name]; ok && strings.HasPrefix(name, tags) {
			refs.Commits[name], refs.Tags[name] = peeled.String(), id.String()
		}
	}
	refs.Head = headOf(adv, refs.Commits)
	return refs
}

// headOf is the branch that HEAD points at. Servers without the symref capability let
// it be told by the commit only: then it is main, master, or the one branch there.
func headOf(adv *packp.AdvRefs, commits map[string]string) string {
	for _, pair := range adv.Capabilities.Get(capability.SymRef) {
		if to, ok := strings.CutPrefix(pair, "HEAD:"); ok {
			return to
		}
	}
	if adv.Head == nil {
		return ""
	}
	var at []string
	for name, id := range commits {
		if id != adv.Head.String() || !strings.HasPrefix(name, branches) {
			continue
		}
		if name == branches+"main" || name == branches+"master" {
			return name
		}
		at = append(at, name)
	}
	if len(at) == 1 {
		return at[0]
	}
	return ""
}

// pull fetches objects into a store. depth 0 is all of the history.
func (r *remote) pull(ctx context.Context, c *call, s transport.UploadPackSession, adv *packp.AdvRefs, store storage.Storer, wants, haves []plumbing.Hash, depth int) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	req.Wants, req.Haves = wants, haves
	if depth > 0 {
		req.Depth = packp.DepthCommits(depth)
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
	}
	if adv.Capabilities.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return err
		}
	}
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return r.deadline(ctx, c.cause(fmt.Errorf("fetching from %s: %w", r.name, err)))
	}
	err = packfile.UpdateObjectStorage(store, demuxed(req.Capabilities, res))
	if closed := res.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return r.deadline(ctx, c.cause(fmt.Errorf("the pack from %s cannot be taken: %w", r.name, err)))
	}
	if len(res.Shallows) > 0 {
		return store.SetShallow(res.Shallows)
	}
	return nil
}
