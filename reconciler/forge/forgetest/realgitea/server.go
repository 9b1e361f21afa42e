// Package realgitea starts a real Gitea for tests, with an organization, people, teams
// and a repository, and scripts it through its API. Only tests import it.
package realgitea

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/forge/forgetest"
)

// Server is a Gitea of a test's own.
type Server struct {
	URL   string // http://127.0.0.1:port
	Token string // of forgetest.Self
	root  string // token of the administrator of the site, who may act as anybody
}

// password is that of everybody.
const password = "only-for-tests-1"

// site is the administrator of the site.
const site = "site-admin"

// Start runs bin/gitea on a port of 127.0.0.1 until the test ends. Without the binary
// the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, static := find(t)
	s := &Server{}
	folder := t.TempDir()
	config := filepath.Join(folder, "app.ini")
	port := freePort(t)
	s.URL = fmt.Sprintf("http://127.0.0.1:%d", port)
	writeConfig(t, config, settings{Folder: folder, Static: static, Port: port, Secret: random(t)})
	run(t, binary, config, folder, "migrate")
	run(t, binary, config, folder, "admin", "user", "create", "--admin", "--username", site, "--password", password,
		"--email", site+"@example.com", "--must-change-password=false")
	serve(t, binary, config, folder, s.URL)
	s.root = s.token(t, site, gitea.AccessTokenScopeAll)
	s.people(t)
	// What the adaptor's documentation asks for, and nothing more.
	s.Token = s.token(t, forgetest.Self, "write:issue", "write:repository", "read:user", "read:organization")
	return s
}

// find looks for the binary and for the folder of its templates, at the repository's
// root.
func find(t testing.TB) (binary, static string) {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for ; filepath.Dir(folder) != folder; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil {
			continue
		}
		binary, static = filepath.Join(folder, "bin", "gitea"), filepath.Join(folder, "bin", ".gitea-static")
		if _, err := os.Stat(binary); err == nil {
			return binary, static
		}
		break
	}
	t.Skip("there is no Gitea to try: make testacc-gitea builds it into bin/ (once, for ten minutes of CPU) and runs this")
	return "", ""
}

// freePort is one that was free a moment ago: Gitea does not tell which one it got.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	at, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return at.Port
}

func random(t testing.TB) string {
	t.Helper()
	b := make([]byte, 32)
	_, err := rand.Read(b)
	require.NoError(t, err)
	return hex.EncodeToString(b)
}

// settings fill the configuration.
type settings struct {
	Folder, Static, Secret string
	Port                   int
}

var configuration = template.Must(template.New("").Parse(`APP_NAME = a forge for tests
RUN_MODE = prod
WORK_PATH = {{.Folder}}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {{.Port}}
ROOT_URL = http://127.0.0.1:{{.Port}}/
STATIC_ROOT_PATH = {{.Static}}
DISABLE_SSH = true
OFFLINE_MODE = true

[database]
DB_TYPE = sqlite3
PATH = {{.Folder}}/gitea.db
SQLITE_JOURNAL_MODE = WAL

[security]
INSTALL_LOCK = true
SECRET_KEY = {{.Secret}}
PASSWORD_HASH_ALGO = pbkdf2$1000$50

[repository]
ROOT = {{.Folder}}/repositories
DEFAULT_BRANCH = main

[webhook]
ALLOWED_HOST_LIST = loopback

[service]
DISABLE_REGISTRATION = true

[actions]
ENABLED = false

[cron]
ENABLED = false

[log]
MODE = console
LEVEL = Warn
`))

func writeConfig(t testing.TB, path string, s settings) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, configuration.Execute(&b, s))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
}

// command is Gitea with a home of its own, so that nobody's git configuration matters.
func command(ctx context.Context, binary, config, folder string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, binary, append(args, "--config", config)...)
	c.Dir = folder
	c.Env = append(os.Environ(), "HOME="+folder, "GITEA_WORK_DIR="+folder, "USER=git")
	return c
}

func run(t testing.TB, binary, config, folder string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := command(ctx, binary, config, folder, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// tail keeps the end of what a process says.
type tail struct {
	mu  sync.Mutex
	out []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(l.out, p...)
	if most := 64 << 10; len(l.out) > most {
		l.out = l.out[len(l.out)-most:]
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.out)
}

// serve runs the server and waits until it answers.
func serve(t testing.TB, binary, config, folder, url string) {
	t.Helper()
	said := &tail{}
	// Not the test's context: it ends before the clean-up that waits for the process.
	c := command(context.WithoutCancel(t.Context()), binary, config, folder, "web")
	c.Stdout, c.Stderr = said, said
	require.NoError(t, c.Start())
	ended := make(chan struct{})
	var result error
	go func() {
		defer close(ended)
		result = c.Wait()
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = c.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("Gitea said:\n%s", said)
		}
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			t.Errorf("Gitea ended: %v\n%s", result, said)
			return true
		default:
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/healthz", nil)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond, "Gitea does not answer")
	if t.Failed() {
		t.FailNow()
	}
}

// token makes one of a user's.
func (s *Server) token(t testing.TB, user string, scopes ...gitea.AccessTokenScope) string {
	t.Helper()
	c, err := gitea.NewClient(s.URL, gitea.SetBasicAuth(user, password))
	require.NoError(t, err)
	made, _, err := c.CreateAccessToken(gitea.CreateAccessTokenOption{Name: "test-" + random(t)[:8], Scopes: scopes})
	require.NoError(t, err)
	return made.Token
}

// as is a client that acts as a user.
func (s *Server) as(t testing.TB, user string) *gitea.Client {
	t.Helper()
	c, err := gitea.NewClient(s.URL, gitea.SetToken(s.root), gitea.SetSudo(user))
	require.NoError(t, err)
	return c
}

// people makes the people of a stage, the organization and its teams.
func (s *Server) people(t testing.TB) {
	t.Helper()
	root := s.as(t, site)
	stay := false
	for _, name := range []string{forgetest.Self, "ann", "ben", "olga", "zoe"} {
		_, _, err := root.AdminCreateUser(gitea.CreateUserOption{Username: name, Email: name + "@example.com", Password: password, MustChangePassword: &stay})
		require.NoError(t, err)
	}
	_, _, err := root.CreateOrg(gitea.CreateOrgOption{Name: "acme"})
	require.NoError(t, err)
	for team, user := range map[string]string{"platform": "ben", "data": "ann"} {
		made, _, err := root.CreateTeam("acme", gitea.CreateTeamOption{
			Name: team, Permission: gitea.AccessModeRead, Units: []gitea.RepoUnitType{gitea.RepoUnitCode},
		})
		require.NoError(t, err)
		// Gitea tells who is in a team to its members and to the organization's owners.
		for _, member := range []string{user, forgetest.Self} {
			_, err = root.AddTeamMember(made.ID, member)
			require.NoError(t, err)
		}
	}
}

// Repository makes acme/app anew, private, with one commit on main, and gives the people
// their roles in it. Self is administrator, without which Gitea tells nobody's role.
func (s *Server) Repository(t testing.TB) {
	t.Helper()
	root := s.as(t, site)
	if _, resp, err := root.GetRepo("acme", "app"); err == nil {
		_, err := root.DeleteRepo("acme", "app")
		require.NoError(t, err)
	} else {
		require.NotNil(t, resp)
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
	}
	_, _, err := root.CreateOrgRepo("acme", gitea.CreateRepoOption{Name: "app", Private: true, AutoInit: true, DefaultBranch: "main"})
	require.NoError(t, err)
	for user, mode := range map[string]gitea.AccessMode{
		"ann": gitea.AccessModeWrite, "ben": gitea.AccessModeWrite, "olga": gitea.AccessModeAdmin, forgetest.Self: gitea.AccessModeAdmin,
	} {
		_, err := root.AddCollaborator("acme", "app", user, gitea.AddCollaboratorOption{Permission: &mode})
		require.NoError(t, err)
	}
}

// CloneURL is the repository's address for Git over HTTP, as a user.
func (s *Server) CloneURL(user string) string {
	return strings.Replace(s.URL, "http://", "http://"+user+":"+password+"@", 1) + "/acme/app.git"
}
