package reconciler

import (
	"context"
	"crypto/sha1" //nolint:gosec // it makes names, as Git does
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource"
)

// memoryRemote is a repository in memory: commits with their files and one parent.
type memoryRemote struct {
	w           *stage
	heads       map[string]string // full ref names
	commits     map[string]memoryCommit
	refused     map[string]string // path to reason
	down        error
	unmergeable error
	panics      int // calls that panic
	calls       map[string]int
	n           int
}

type memoryCommit struct {
	commit gitsource.Commit
	parent string
	files  map[string]string
}

func newMemoryRemote(w *stage) *memoryRemote {
	return &memoryRemote{w: w, heads: map[string]string{}, commits: map[string]memoryCommit{}, refused: map[string]string{}, calls: map[string]int{}}
}

func sum(s string) string {
	h := sha1.Sum([]byte(s)) //nolint:gosec // as above
	return hex.EncodeToString(h[:])
}

// push adds a commit to a branch: files by path, an empty text removes one.
func (m *memoryRemote) push(branch, subject string, files map[string]string) string {
	return m.pushOn("refs/heads/"+branch, m.heads["refs/heads/"+branch], subject, files)
}

// pushOn adds a commit on a parent and points a ref at it.
func (m *memoryRemote) pushOn(ref, parent, subject string, files map[string]string) string {
	all := maps.Clone(m.commits[parent].files)
	if all == nil {
		all = map[string]string{}
	}
	for path, text := range files {
		if all[path] = text; text == "" {
			delete(all, path)
		}
	}
	m.n++
	id := sum(fmt.Sprint(ref, parent, subject, m.n))
	m.commits[id] = memoryCommit{commit: gitsource.Commit{ID: id, Author: "Ana <ana@acme.test>", Committer: "Ana <ana@acme.test>", At: m.w.now, Subject: subject}, parent: parent, files: all}
	m.heads[ref] = id
	return id
}

func (m *memoryRemote) call(name string) error {
	m.calls[name]++
	if m.panics > 0 {
		m.panics--
		panic("index out of range")
	}
	return m.down
}

func (m *memoryRemote) Refs(context.Context) (gitsource.Refs, error) {
	if err := m.call("refs"); err != nil {
		return gitsource.Refs{}, err
	}
	return gitsource.Refs{Head: "refs/heads/main", Commits: maps.Clone(m.heads), Tags: map[string]string{}}, nil
}

func (m *memoryRemote) reachable(id string) bool {
	for _, head := range m.heads {
		for at := head; at != ""; at = m.commits[at].parent {
			if at == id {
				return true
			}
		}
	}
	return false
}

func (m *memoryRemote) Read(_ context.Context, at gitsource.Resolved) (gitsource.Snapshot, error) {
	if err := m.call("read"); err != nil {
		return gitsource.Snapshot{}, err
	}
	if !m.reachable(at.Commit) {
		return gitsource.Snapshot{}, &gitsource.Gone{Commit: at.Commit, Why: "no ref has it"}
	}
	c := m.commits[at.Commit]
	return m.snapshot(c.commit, c.files), nil
}

func (m *memoryRemote) snapshot(c gitsource.Commit, files map[string]string) gitsource.Snapshot {
	out := gitsource.Snapshot{Commit: c}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if reason, no := m.refused[path]; no {
			out.Refused = append(out.Refused, gitsource.Refusal{Path: path, Reason: reason})
			continue
		}
		out.Files = append(out.Files, gitsource.File{Path: path, Blob: sum(files[path]), Bytes: []byte(files[path])})
	}
	return out
}

func (m *memoryRemote) ancestors(id string) []string {
	var out []string
	for at := id; at != ""; at = m.commits[at].parent {
		out = append(out, at)
	}
	return out
}

func (m *memoryRemote) Merge(_ context.Context, base, head string) (gitsource.Snapshot, error) {
	if err := m.call("merge"); err != nil {
		return gitsource.Snapshot{}, err
	}
	if m.unmergeable != nil {
		return gitsource.Snapshot{}, m.unmergeable
	}
	if m.commits[head].files == nil || m.commits[base].files == nil {
		return gitsource.Snapshot{}, &gitsource.Gone{Commit: head, Why: "no ref has it"}
	}
	ours := m.ancestors(base)
	fork := ""
	for _, a := range m.ancestors(head) {
		if slices.Contains(ours, a) {
			fork = a
			break
		}
	}
	was, mine, theirs := m.commits[fork].files, m.commits[base].files, m.commits[head].files
	merged := maps.Clone(mine)
	var both []string
	paths := map[string]bool{}
	for _, files := range []map[string]string{was, theirs} {
		for path := range files {
			paths[path] = true
		}
	}
	for path := range paths {
		switch {
		case theirs[path] == was[path], theirs[path] == mine[path]:
		case mine[path] == was[path]:
			if merged[path] = theirs[path]; theirs[path] == "" {
				delete(merged, path)
			}
		default:
			both = append(both, path)
		}
	}
	if len(both) > 0 {
		slices.Sort(both)
		return gitsource.Snapshot{}, &gitsource.Conflict{Base: base, Head: head, Files: both}
	}
	return m.snapshot(m.commits[head].commit, merged), nil
}

func (m *memoryRemote) Log(_ context.Context, from, to string, most int) (gitsource.Log, error) {
	if err := m.call("log"); err != nil {
		return gitsource.Log{}, err
	}
	var out gitsource.Log
	line := m.ancestors(to)
	at := slices.Index(line, from)
	if at < 0 {
		out.Rewritten, at = true, len(line)
	}
	for _, id := range line[:at] {
		out.Commits = append(out.Commits, m.commits[id].commit)
	}
	slices.Reverse(out.Commits)
	if len(out.Commits) > most {
		out.Commits, out.Cut = out.Commits[len(out.Commits)-most:], true
	}
	return out, nil
}

var errGitDown = errors.New("the Git host is away")
