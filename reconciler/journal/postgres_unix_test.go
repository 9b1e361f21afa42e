//go:build unix

package journal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// cluster is a throw-away PostgreSQL on a unix socket in a temporary folder, one for all
// tests of this package.
type cluster struct {
	dir string
	cmd *exec.Cmd
	err error // why there is none
}

// startedCluster is what TestMain stops.
var startedCluster *cluster

var startCluster = sync.OnceValue(func() (c *cluster) {
	c = &cluster{}
	startedCluster = c
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(program); err != nil {
			c.err = fmt.Errorf("PostgreSQL is not installed here: %w", err)
			return c
		}
	}
	c.dir, c.err = os.MkdirTemp("", "pg") // short: a socket's path has about 100 characters
	if c.err == nil {
		c.err = c.start()
	}
	return c
})

// as has a command run as somebody whom PostgreSQL takes: it refuses root.
func (c *cluster) as(cmd *exec.Cmd) error {
	cmd.Dir = c.dir
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		who, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return os.Chown(c.dir, int(uid), int(gid))
	}
	return errors.New("this is root, and there is no other user to run PostgreSQL as")
}

func (c *cluster) start() error {
	data := filepath.Join(c.dir, "data")
	initdb := exec.Command("initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=postgres", "--pgdata="+data)
	if err := c.as(initdb); err != nil {
		return err
	}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	c.cmd = exec.Command("postgres", "-D", data, "-k", c.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	if err := c.as(c.cmd); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	db, err := sql.Open("pgx", c.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = db.PingContext(context.Background()); err == nil || time.Now().After(end) {
			return err
		}
	}
}

func (c *cluster) url(database string) string {
	return "postgres:///" + database + "?user=postgres&host=" + url.QueryEscape(c.dir)
}

// stop ends what was started and takes its folder away.
func (c *cluster) stop() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // at once
		_ = c.cmd.Wait()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

var databases struct {
	sync.Mutex
	n int
}

// postgres is the address of an empty database.
func postgres(t *testing.T) string {
	t.Helper()
	c := startCluster()
	if c.err != nil {
		t.Skip(c.err)
	}
	databases.Lock()
	defer databases.Unlock()
	databases.n++
	name := fmt.Sprintf("journal_%d", databases.n)
	onPostgres(t, c.url("postgres"), "CREATE DATABASE "+name)
	return c.url(name)
}

// onPostgres runs statements as an administrator would.
func onPostgres(t *testing.T, url string, statements ...string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	for _, s := range statements {
		_, err = db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
	require.NoError(t, db.Close())
}
