// Package gittest is a Git server for tests: repositories behind real smart HTTP and
// real SSH on 127.0.0.1, with helpers that make commits, tags, signatures and hostile
// trees without a worktree, faults that are put in between, and a count of the calls.
// It needs the git command, whose http-backend and upload-pack it runs.
package gittest

import (
	"crypto/subtle"
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Options say who may come in over HTTP. Without a user and a bearer everybody may.
type Options struct {
	User, Password string
	Bearer         string
	TLS            TLS
}

// TLS says whether the server speaks https.
type TLS string

// With and without TLS.
const (
	PlainHTTP TLS = ""
	HTTPS     TLS = "https"
)

// Kind of a call.
type Kind string

// The kinds of calls: refs are listed, objects are fetched.
const (
	Refs Kind = "refs"
	Pack Kind = "pack"
)

// Server serves repositories until its test ends.
type Server struct {
	URL string // without a slash at its end

	t       testing.TB
	git     string
	root    string
	options Options
	http    *httptest.Server
	closing chan struct{}

	mu     sync.Mutex
	calls  map[Kind]int
	faults []Fault
	moved  map[string]string // old path of a repository to the new one
}

// New starts a server over HTTP.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	git, err := exec.LookPath("git")
	require.NoError(t, err, "the tests with a Git server need the git command")
	s := &Server{t: t, git: git, root: t.TempDir(), options: o, closing: make(chan struct{}), calls: map[Kind]int{}, moved: map[string]string{}}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if o.TLS == HTTPS {
		s.http.StartTLS()
	} else {
		s.http.Start()
	}
	s.URL = s.http.URL
	t.Cleanup(func() {
		close(s.closing) // whoever hangs in a fault goes on
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// CA is the certificate of a server that speaks https, as PEM.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Calls is how many calls of a kind there were, over HTTP and SSH, those that met a
// fault too.
func (s *Server) Calls(k Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[k]
}

func (s *Server) count(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[k]++
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	kind := Refs
	if r.Method == http.MethodPost {
		kind = Pack
	}
	s.count(kind)
	if to, ok := s.redirect(r.URL.Path); ok {
		target := *r.URL
		target.Path = to
		http.Redirect(w, r, target.String(), http.StatusMovedPermanently)
		return
	}
	if !s.mayCome(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "sign in", http.StatusUnauthorized)
		return
	}
	var next http.Handler = &cgi.Handler{Path: s.git, Args: []string{"http-backend"}, Dir: s.root, Env: append(environment(), "GIT_PROJECT_ROOT="+s.root, "GIT_HTTP_EXPORT_ALL=1"), Stderr: discard{}}
	s.mu.Lock()
	for _, f := range s.faults {
		if f.On == kind || f.On == "" {
			inner, do := next, f.Do
			next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(w, r, inner) })
		}
	}
	s.mu.Unlock()
	next.ServeHTTP(w, r)
}

func (s *Server) mayCome(r *http.Request) bool {
	same := func(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
	switch o := s.options; {
	case o.Bearer != "":
		return same(r.Header.Get("Authorization"), "Bearer "+o.Bearer)
	case o.User != "":
		user, password, _ := r.BasicAuth()
		return same(user, o.User) && same(password, o.Password)
	}
	return true
}

func (s *Server) redirect(path string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from, to := range s.moved {
		if rest, ok := strings.CutPrefix(path, "/"+from+".git"); ok {
			return "/" + to + ".git" + rest, true
		}
	}
	return "", false
}

// Rename moves a repository; the old address redirects to the new one.
func (s *Server) Rename(r *Repository, name string) {
	s.t.Helper()
	to := filepath.Join(s.root, filepath.FromSlash(name)+".git")
	require.NoError(s.t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(s.t, os.Rename(r.Path, to))
	s.mu.Lock()
	s.moved[r.Name] = name
	s.mu.Unlock()
	r.open(name, to)
}

// environment keeps the settings of this machine's user away from git.
func environment() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + os.DevNull, "PATH=" + os.Getenv("PATH")}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
