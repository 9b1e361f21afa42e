package testacc

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sluice-dev/terraform-provider-sluice/internal/api"
	"github.com/sluice-dev/terraform-provider-sluice/internal/engineclient"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/gitsource/gittest"
)

// gitHouse is what lies in Git: an endpoint with a deployment that serves, and what a
// change adds to it.
func gitHouse(added ...string) map[string]string {
	return map[string]string{"prod/main.tf": `resource "sluice_endpoint" "chat" {
  name = "chat"
}

resource "sluice_deployment" "stable" {
  endpoint_id            = sluice_endpoint.chat.id
  name                   = "stable"
  model                  = "demo/stable"
  config                 = "cr_stable"
  autoscaling            = { min_replicas = 2, max_replicas = 2 }
  initial_traffic_weight = 1
}
` + strings.Join(added, "")}
}

// gitCanary is a candidate of a serving config and a canary to it, whose gate compares
// the average latency of both sides.
func gitCanary(config, interval string, steps ...int) string {
	var rungs []string
	for _, s := range steps {
		rungs = append(rungs, fmt.Sprintf("{ traffic = %d }", s))
	}
	return fmt.Sprintf(`
resource "sluice_deployment" "candidate" {
  endpoint_id = sluice_endpoint.chat.id
  name        = "candidate"
  model       = "demo/candidate"
  config      = %q
  autoscaling = { min_replicas = 0, max_replicas = 0 }
}

resource "sluice_rollout" "next" {
  endpoint_id          = sluice_endpoint.chat.id
  source_deployment_id = sluice_deployment.stable.id
  target_deployment_id = sluice_deployment.candidate.id
  canary               = { steps = [%s], step_interval = %q }
  metrics = [{
    name             = "router_latency"
    stat             = "AVG"
    window           = "1s"
    regression_check = { direction = "HIGHER_IS_WORSE", max_regression_percent = 100 }
  }]
}
`, config, strings.Join(rungs, ", "), interval)
}

// The keys of a reconciler's HTTP door, by name.
var doorKeys = map[string]string{"olga": "key-of-an-administrator", "ann": "key-of-a-writer", "wall": "key-of-a-screen"}

// followed is a repository on a real Git server, its forge, an engine, and the folder of
// a reconciler that follows them.
type followed struct {
	t      *testing.T
	engine *testEngine
	server *gittest.Server
	repo   *gittest.Repository
	forge  *forgetest.World
	dir    string
	config string
	env    []string
	main   string // newest commit of main
}

// follow puts a world together whose Git is read over HTTP with a password and whose
// forge is polled. The pieces replace text of the configuration: old, new, old, new.
func follow(t *testing.T, config string, pieces ...string) *followed {
	t.Helper()
	w := &followed{t: t, engine: startEngine(t, config), dir: t.TempDir()}
	w.server = gittest.New(t, gittest.Options{User: "robot", Password: "only for tests"})
	w.repo = w.server.Repository("acme/models")
	w.main = w.repo.Commit("main", gitHouse())
	w.forge = forgetest.New(forgetest.Options{Repository: "acme/models"})
	forgetest.People(w.forge)
	w.forge.SetRole("zoe", forge.Read) // a stranger gets no answer, who may read gets one
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + os.TempDir(), "NO_COLOR=1"}
	w.secret("engine", w.engine.Key)
	w.secret("git", "only for tests")
	w.secret("forge", "token")
	w.secret("hook", "a secret between two machines")
	for name, key := range doorKeys {
		w.secret("key-"+name, key)
	}
	text := fmt.Sprintf(`engine {
  url          = %q
  api_key_file = "engine"
}

http {
  listen = "127.0.0.1:0"
  key "olga" {
    secret_file = "key-olga"
    role        = "admin"
  }
  key "ann" {
    secret_file = "key-ann"
    role        = "write"
  }
  key "wall" {
    secret_file = "key-wall"
  }
}

repository "models" {
  url      = %q
  branch   = "main"
  interval = "5s"

  auth {
    username      = "robot"
    password_file = "git"
  }

  forge "github" {
    url        = %q
    repository = "acme/models"
    token_file = "forge"
  }

  stack "prod" {
    folder = "prod"
  }
}

limits {
  per_host = 1000
}
`, w.engine.APIURL, w.repo.URL(), w.forge.Serve(t, forgetest.GitHub))
	for i := 0; i+1 < len(pieces); i += 2 {
		require.Contains(t, text, pieces[i])
		text = strings.Replace(text, pieces[i], pieces[i+1], 1)
	}
	w.config = filepath.Join(w.dir, "sluice.hcl")
	w.write("sluice.hcl", text)
	return w
}

func (w *followed) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
}

func (w *followed) secret(name, value string) { w.write(name, value+"\n") }

// replace changes the configuration for the processes that are started from now on.
func (w *followed) replace(from, to string) {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	require.Contains(w.t, string(text), from)
	w.write("sluice.hcl", strings.Replace(string(text), from, to, 1))
}

// overSSH makes the repository be read over SSH, with a pinned host key.
func (w *followed) overSSH() {
	w.t.Helper()
	host, _ := sshKey(w.t)
	client, private := sshKey(w.t)
	server := w.server.SSH(w.t, gittest.SSHOptions{HostKeys: []ssh.Signer{host}, Authorized: []ssh.PublicKey{client.PublicKey()}})
	w.secret("ssh", strings.TrimSpace(string(private)))
	w.write("known_hosts", string(server.KnownHosts(host.PublicKey())))
	w.replace(fmt.Sprintf("%q", w.repo.URL()), fmt.Sprintf("%q", server.URL(w.repo)))
	w.replace("username      = \"robot\"\n    password_file = \"git\"", "ssh_key_file = \"ssh\"\n    known_hosts  = \"known_hosts\"")
}

// sshKey makes a key, and its private half as a file has it.
func sshKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "a test")
	require.NoError(t, err)
	return signer, pem.EncodeToMemory(block)
}

// pull is a pull request of a branch.
type pull struct {
	w      *followed
	number int
	branch string
	head   string
}

// propose pushes a branch from main and opens a pull request of ann's for it.
func (w *followed) propose(branch string, files map[string]string) *pull {
	w.t.Helper()
	head := w.repo.Make(gittest.Spec{Branch: branch, Parents: []string{w.main}, Files: files, Message: branch})
	return &pull{w, w.forge.OpenPullRequest(forgetest.Opening{Author: "ann", Title: branch, Head: head, HeadRef: branch, Base: w.main, Files: slices.Sorted(keysOf(files))}), branch, head}
}

func keysOf(files map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range files {
			if !yield(k) {
				return
			}
		}
	}
}

// push gives the pull request another commit.
func (p *pull) push(files map[string]string) {
	p.w.t.Helper()
	p.head = p.w.repo.Commit(p.branch, files)
	p.w.forge.Push(p.number, p.head)
}

// merge pushes a merge commit to main and tells the forge, as its button does.
func (p *pull) merge(files map[string]string) {
	p.w.t.Helper()
	p.w.main = p.w.repo.Make(gittest.Spec{Branch: "main", Parents: []string{p.w.main, p.head}, Files: files, Message: fmt.Sprintf("Merge pull request #%d", p.number)})
	p.w.forge.Merge(p.number, p.w.main)
}

// comment is the reconciler's one comment; empty while there is none.
func (p *pull) comment() string {
	p.w.t.Helper()
	own := p.own()
	require.LessOrEqual(p.w.t, len(own), 1, "one sticky comment")
	if len(own) == 0 {
		return ""
	}
	return own[0].Body
}

func (p *pull) own() []forge.Comment {
	var out []forge.Comment
	for _, c := range p.w.forge.Comments(p.number) {
		if c.Bot && strings.Contains(c.Body, "<!-- sluice instance=") {
			out = append(out, c)
		}
	}
	return out
}

// shows waits until the comment has texts, and returns it.
func (p *pull) shows(most time.Duration, texts ...string) string {
	p.w.t.Helper()
	all := func() bool {
		body := p.comment()
		for _, text := range texts {
			if !strings.Contains(body, text) {
				return false
			}
		}
		return true
	}
	if !assertSoon(most, all) {
		p.w.t.Fatalf("the comment does not come to show %q:\n%s", texts, p.comment())
	}
	return p.comment()
}

// assertSoon asks until something is so.
func assertSoon(most time.Duration, so func() bool) bool {
	end := time.NewTimer(most)
	defer end.Stop()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for !so() {
		select {
		case <-end.C:
			return so()
		case <-every.C:
		}
	}
	return true
}

// rollouts are all of the engine's, oldest first.
func (w *followed) rollouts() []api.Rollout {
	w.t.Helper()
	var out []api.Rollout
	for ep, err := range w.engine.Client.Endpoints(w.t.Context(), engineclient.ListOptions{}) {
		require.NoError(w.t, err)
		for r, err := range w.engine.Client.Rollouts(w.t.Context(), ep.ID, "") {
			require.NoError(w.t, err)
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b api.Rollout) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	return out
}

// states are the states of all rollouts, oldest first.
func (w *followed) states() []string {
	var out []string
	for _, r := range w.rollouts() {
		out = append(out, engineclient.Short(r.State))
	}
	return out
}

// follower is a reconciler that runs.
type follower struct {
	w     *followed
	cmd   *exec.Cmd
	URL   string // of its HTTP door
	ended chan struct{}
	said  *lockedBuffer
}

// lockedBuffer keeps what a process says on stderr.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// command is the built binary with words, in the reconciler's folder.
func (w *followed) command(ctx context.Context, args ...string) *exec.Cmd {
	w.t.Helper()
	binary := os.Getenv("SLUICE_TEST_BINARY")
	require.NotEmpty(w.t, binary, "SLUICE_TEST_BINARY names the built binary; make test sets it")
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	return cmd
}

// start runs the reconciler and returns when its door is open.
func (w *followed) start() *follower {
	w.t.Helper()
	p := &follower{w: w, ended: make(chan struct{}), said: &lockedBuffer{}}
	p.cmd = w.command(context.WithoutCancel(w.t.Context()), "reconcile", "--config", w.config, "--log-level", "debug")
	p.cmd.Stdout, p.cmd.Stderr = io.Discard, p.said
	require.NoError(w.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	w.t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if w.t.Failed() {
			w.t.Logf("a reconciler said:\n%s", p.said)
		}
	})
	opened := func() bool {
		_, after, ok := strings.Cut(p.said.String(), "reconciler: ")
		address, _, whole := strings.Cut(after, "\n")
		p.URL = address
		return ok && whole
	}
	require.True(w.t, assertSoon(soon, opened), "the reconciler did not start: %s", p.said)
	return p
}

// end sends a signal and returns how long the process took to end.
func (p *follower) end(signal os.Signal) time.Duration {
	began := time.Now()
	if p.cmd.Process.Signal(signal) != nil { // it has ended
		<-p.ended
		return 0
	}
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.w.t.Errorf("the reconciler did not end in order:\n%s", p.said)
	}
	return time.Since(began)
}

// hooked delivers the forge's webhooks to the process, over HTTP.
func (p *follower) hooked() {
	p.w.t.Helper()
	to, err := url.Parse(p.URL)
	require.NoError(p.w.t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) } // it is lost, as webhooks are
	p.w.forge.Subscribe(forgetest.GitHub, []byte("a secret between two machines"), "/hooks/models", proxy)
}

// run is one command to its end: what it prints, what it complains of, and its exit code.
func (w *followed) run(args ...string) (out, errs string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 90*time.Second)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := w.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// ask is a command of the door, with somebody's key.
func (p *follower) ask(key string, words ...string) (out, errs string, code int) {
	p.w.t.Helper()
	return p.w.run(append([]string{"reconcile"}, append(words, "--reconciler", p.URL, "--key", key)...)...)
}

// stackStatus is what "sluice reconcile status --json" says of the stack.
type stackStatus struct {
	Plan     string
	Phase    string
	Error    string
	Waits    []struct{ For, What string }
	Rollouts []struct {
		ID, State, Category string
		Reverse             bool
	}
}

// stack asks the process where the stack is; the zero value when it does not answer.
func (p *follower) stack() stackStatus {
	p.w.t.Helper()
	out, _, code := p.ask(doorKeys["wall"], "status", "--json")
	if code != 0 {
		return stackStatus{}
	}
	return p.w.stackIn(out)
}

func (w *followed) stackIn(status string) stackStatus {
	w.t.Helper()
	var all struct {
		Repositories []struct{ Stacks []stackStatus }
	}
	require.NoError(w.t, json.Unmarshal([]byte(status), &all), status)
	require.Len(w.t, all.Repositories, 1)
	require.Len(w.t, all.Repositories[0].Stacks, 1)
	return all.Repositories[0].Stacks[0]
}

// holds reports whether a process holds the lease.
func (w *followed) holds(p *follower) bool {
	w.t.Helper()
	out, _, code := p.ask(doorKeys["wall"], "status", "--json")
	var s struct{ Holder struct{ Mine bool } }
	return code == 0 && json.Unmarshal([]byte(out), &s) == nil && s.Holder.Mine
}

// between stands between the reconciler and the engine, and returns its address.
func (w *followed) between(h http.HandlerFunc) string {
	w.t.Helper()
	s := httptest.NewServer(h)
	w.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}
