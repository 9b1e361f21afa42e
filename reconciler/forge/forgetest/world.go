// Package forgetest is a forge for tests: a model of one repository with its pull
// requests, comments, statuses, reviews, roles and teams, which a test scripts as the
// people at a forge would; a forge.Forge over it, in memory; and HTTP servers that speak
// enough of the APIs of GitHub, GitLab and Gitea over the same model for the real
// adaptors. Each call can be made to fail in the ways that real ones do, writes are
// counted, and webhooks can be lost or doubled. Only tests import it.
package forgetest

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
)

// Self is the account whose token the adaptors use.
const Self = "sluice-bot"

// World is one repository at a make-believe forge. It is safe for concurrent use.
type World struct {
	mu       sync.Mutex
	now      func() time.Time
	state    *state
	faults   map[Call][]Fault
	always   map[Call]Fault
	calls    map[Call]int
	writes   map[Call]int
	token    string
	mostPage int
	notMod   int
	apps     map[int64]app
	subs     []subscription
	lose     int
	double   int
	sent     int
}

// Options of a world. Empty fields take what is said there.
type Options struct {
	Repository string           // default acme/app
	Branch     string           // default main
	URL        string           // of the repository, for people; default https://forge.test/<name>
	Now        func() time.Time // default time.Now
	Token      string           // that the HTTP servers take; default "token"
}

// New makes a world without pull requests, in which Self may write.
func New(o Options) *World {
	o.Repository = cmp.Or(o.Repository, "acme/app")
	o.Branch = cmp.Or(o.Branch, "main")
	o.URL = cmp.Or(o.URL, "https://forge.test/"+o.Repository)
	o.Token = cmp.Or(o.Token, "token")
	if o.Now == nil {
		o.Now = time.Now
	}
	return &World{
		now: o.Now, token: o.Token,
		faults: map[Call][]Fault{}, always: map[Call]Fault{}, calls: map[Call]int{}, writes: map[Call]int{}, apps: map[int64]app{},
		state: &state{
			repository: forge.Repository{ID: 1, FullName: o.Repository, DefaultBranch: o.Branch, URL: o.URL},
			pulls:      map[int]*pull{}, roles: map[string]forge.Role{Self: forge.Write}, teams: map[string][]string{},
			reactions: map[reaction]bool{},
		},
	}
}

// state is all that a forge keeps. Instants are whole seconds, as most forges tell them.
type state struct {
	repository forge.Repository
	pulls      map[int]*pull
	statuses   []statusRow // oldest first
	roles      map[string]forge.Role
	teams      map[string][]string // organization/team: users
	reactions  map[reaction]bool
	lastID     int64
}

type pull struct {
	forge.PullRequest
	files    []string
	renamed  map[string]string // new path: old path
	comments []forge.Comment
	reviews  []reviewRow
	versions []version
	openedAt time.Time
}

// version is a head that a pull request had from an instant on.
type version struct {
	head string
	at   time.Time
}

type reviewRow struct {
	id        int64
	user      string
	commit    string
	at        time.Time
	approved  bool
	dismissed bool
}

type statusRow struct {
	id     int64
	commit string
	at     time.Time
	forge.Status
}

type reaction struct {
	comment int64
	user    string
	sign    forge.Sign
}

// clone is a copy that later writes do not reach.
func (s *state) clone() *state {
	c := *s
	c.pulls = map[int]*pull{}
	for n, p := range s.pulls {
		q := *p
		q.files, q.comments = slices.Clone(p.files), slices.Clone(p.comments)
		q.reviews, q.versions = slices.Clone(p.reviews), slices.Clone(p.versions)
		c.pulls[n] = &q
	}
	c.statuses = slices.Clone(s.statuses)
	c.roles, c.reactions = maps.Clone(s.roles), maps.Clone(s.reactions)
	c.teams = map[string][]string{}
	for t, users := range s.teams {
		c.teams[t] = slices.Clone(users)
	}
	return &c
}

func (s *state) id() int64 {
	s.lastID++
	return s.lastID
}

// users are all names that occur.
func (s *state) users() []string {
	seen := map[string]bool{Self: true}
	for name := range s.roles {
		seen[name] = true
	}
	for _, members := range s.teams {
		for _, name := range members {
			seen[name] = true
		}
	}
	for _, p := range s.pulls {
		seen[p.Author] = true
		for _, c := range p.comments {
			seen[c.Author] = true
		}
		for _, r := range p.reviews {
			seen[r.user] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// numbers are those of all pull requests, rising.
func (s *state) numbers() []int { return slices.Sorted(maps.Keys(s.pulls)) }

func (s *state) pull(number int) (*pull, error) {
	p, ok := s.pulls[number]
	if !ok {
		return nil, &problem{status: http.StatusNotFound, message: "Not Found"}
	}
	return p, nil
}

func (s *state) comment(id int64) (*pull, *forge.Comment, error) {
	for _, p := range s.pulls {
		for i := range p.comments {
			if p.comments[i].ID == id {
				return p, &p.comments[i], nil
			}
		}
	}
	return nil, nil, &problem{status: http.StatusNotFound, message: "Not Found"}
}

// userID is a number for a name, the same in every world.
func userID(name string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int64(h.Sum32()&0x7fffffff) + 1
}

// madeUp is a commit id that no repository has.
func madeUp(words ...any) string {
	sum := sha1.Sum([]byte(fmt.Sprint(words...)))
	return hex.EncodeToString(sum[:])
}

// second is now as forges tell it.
func (w *World) second() time.Time { return w.now().UTC().Truncate(time.Second) }

func (w *World) touch(p *pull) { p.UpdatedAt = w.second() }

func (w *World) addComment(s *state, number int, user, body string) (forge.Comment, error) {
	p, err := s.pull(number)
	if err != nil {
		return forge.Comment{}, err
	}
	if body == "" {
		return forge.Comment{}, &problem{status: http.StatusUnprocessableEntity, message: "body cannot be blank"}
	}
	id, now := s.id(), w.second()
	c := forge.Comment{
		ID: id, Author: user, Bot: user == Self, Body: body, At: now, UpdatedAt: now,
		URL: fmt.Sprintf("%s#comment-%d", p.URL, id),
	}
	p.comments = append(p.comments, c)
	w.touch(p)
	return c, nil
}

func (w *World) editComment(s *state, id int64, body string) (forge.Comment, error) {
	p, c, err := s.comment(id)
	if err != nil {
		return forge.Comment{}, err
	}
	c.Body, c.UpdatedAt = body, w.second()
	w.touch(p)
	return *c, nil
}

func (w *World) addStatus(s *state, commit string, st forge.Status) statusRow {
	row := statusRow{id: s.id(), commit: commit, at: w.second(), Status: st}
	s.statuses = append(s.statuses, row)
	return row
}

func (s *state) react(comment int64, user string, sign forge.Sign) (bool, error) {
	if _, _, err := s.comment(comment); err != nil {
		return false, err
	}
	key := reaction{comment: comment, user: user, sign: sign}
	was := s.reactions[key]
	s.reactions[key] = true
	return was, nil
}

// newest are the newest statuses of a commit, newest first.
func (s *state) newest(commit string) []statusRow {
	var out []statusRow
	seen := map[string]bool{}
	for _, row := range slices.Backward(s.statuses) {
		if row.commit == commit && !seen[row.Context] {
			seen[row.Context] = true
			out = append(out, row)
		}
	}
	return out
}

// since are the comments of a pull request that changed at or after an instant.
func (p *pull) since(at time.Time) []forge.Comment {
	at = at.Truncate(time.Second)
	var out []forge.Comment
	for _, c := range p.comments {
		if !c.UpdatedAt.Before(at) {
			out = append(out, c)
		}
	}
	return out
}

// paths are what a pull request touches, with the old names of what it renames.
func (p *pull) paths() []string {
	out := slices.Clone(p.files)
	for _, old := range p.renamed {
		out = append(out, old)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
