package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store"
	"github.com/sluice-dev/terraform-provider-sluice/internal/store/storetest"
)

// writerDir names the folder in which a re-executed test binary writes until it is
// killed.
const writerDir = "SLUICE_STORE_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := writeForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func TestSQLiteConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		dir := t.TempDir()
		return func(t *testing.T) storetest.Store {
			s, err := store.Open(t.Context(), dir)
			require.NoError(t, err)
			return s
		}
	})
}

func TestAFileThatIsNotAStoreIsRefusedAndLeftAsItIs(t *testing.T) {
	for name, content := range map[string][]byte{
		"text":             []byte("somebody's notes, far from a database of any kind\n"),
		"a damaged header": append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{0xff}, 4096)...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "sluice.db")
			require.NoError(t, os.WriteFile(path, content, 0o600))
			_, err := store.Open(t.Context(), dir)
			require.ErrorContains(t, err, "sluice.db")
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, content, after)
		})
	}
}

func TestAForeignDatabaseIsRefusedAndLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sluice.db")
	exec := func(query string) {
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), query)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
	exec("CREATE TABLE customers (id TEXT); INSERT INTO customers VALUES ('precious')")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = store.Open(t.Context(), dir)
	require.ErrorContains(t, err, "not a store of Sluice's")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "not a byte is changed")
}

func TestANewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	db, err := sql.Open("sqlite", filepath.Join(dir, "sluice.db"))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = store.Open(t.Context(), dir)
	require.ErrorContains(t, err, "schema 9999")
}

func TestAFolderThatDoesNotExistIsRefused(t *testing.T) {
	_, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}

func TestAFolderWithOddCharactersWorks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%20é")
	require.NoError(t, os.Mkdir(dir, 0o700))
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = os.Stat(filepath.Join(dir, "sluice.db"))
	require.NoError(t, err)
}

// told is what a writer prints once its commit has returned.
type told struct {
	Writer     int
	Generation uint64
}

// writers is how many goroutines of a re-executed test binary write at once, each to an
// endpoint of its own.
const writers = 8

// writeForever commits changes of which every row tells the same number, and prints
// each number once its commit has returned.
func writeForever(dir string) error {
	s, err := store.Open(context.Background(), dir)
	if err != nil {
		return err
	}
	var printing sync.Mutex
	out := json.NewEncoder(os.Stdout)
	failed := make(chan error, writers)
	for w := range writers {
		go func() {
			for {
				n, err := writeOne(s, w)
				if err == nil {
					printing.Lock()
					err = out.Encode(told{w, n})
					printing.Unlock()
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func writeOne(s *store.SQLite, writer int) (uint64, error) {
	ctx, id := context.Background(), fmt.Sprintf("ep_%d", writer)
	ep, err := s.Endpoint(ctx, id)
	if errors.Is(err, rollout.ErrNotFound) {
		ep, err = storetest.Endpoint(id, id), nil
	}
	if err != nil {
		return 0, err
	}
	ep.Generation++
	n := fmt.Sprint(id, "_", ep.Generation)
	r := storetest.Rollout("rol_"+n, id, rollout.Completed)
	return ep.Generation, s.Commit(ctx, rollout.Change{
		Endpoints: []rollout.Endpoint{ep}, Rollouts: []rollout.Rollout{r},
		Events:  []rollout.Event{{EndpointID: id, Type: "x", Message: n, At: time.Now()}},
		Answers: []rollout.Answer{{Key: n, Subject: r.ID, At: time.Now()}},
	})
}

func TestKillInTheMidstOfGroupsLeavesNoHalfChange(t *testing.T) {
	dir := t.TempDir()
	var kept [writers]uint64
	for round := range 6 {
		killedWriter(t, dir, 40+round*25, &kept)
		s, err := store.Open(t.Context(), dir)
		require.NoError(t, err)
		for w := range writers {
			whole(t, s, fmt.Sprintf("ep_%d", w), kept[w])
		}
		require.NoError(t, s.Close())
	}
	t.Logf("measured: commits kept by writer over 6 kills: %v", kept)
}

// whole checks that an endpoint has all that its commits wrote, which are at least so
// many.
func whole(t *testing.T, s *store.SQLite, id string, least uint64) {
	t.Helper()
	ep, err := s.Endpoint(t.Context(), id)
	if errors.Is(err, rollout.ErrNotFound) && least == 0 {
		return
	}
	require.NoError(t, err)
	require.GreaterOrEqual(t, ep.Generation, least, "what Commit reported is kept")
	require.EqualValues(t, ep.Generation, ep.Version)
	rollouts, err := s.Rollouts(t.Context(), id)
	require.NoError(t, err)
	events, _, err := s.Events(t.Context(), rollout.EventQuery{EndpointID: id, Limit: 100000})
	require.NoError(t, err)
	require.Len(t, rollouts, int(ep.Generation))
	require.Len(t, events, int(ep.Generation))
	_, err = s.Answer(t.Context(), fmt.Sprint(id, "_", ep.Generation))
	require.NoError(t, err)
	_, err = s.Answer(t.Context(), fmt.Sprint(id, "_", ep.Generation+1))
	require.ErrorIs(t, err, rollout.ErrNotFound)
}

// killedWriter runs the writers in the folder, kills them after they told so many
// commits, and notes the last number that each of them told.
func killedWriter(t *testing.T, dir string, after int, kept *[writers]uint64) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	dec := json.NewDecoder(out)
	var line told
	for range after {
		require.NoError(t, dec.Decode(&line))
		kept[line.Writer] = line.Generation
	}
	require.NoError(t, cmd.Process.Kill())
	for { // they wrote on until the signal came
		if err := dec.Decode(&line); err != nil {
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
			break
		}
		kept[line.Writer] = line.Generation
	}
	require.Error(t, cmd.Wait())
}
