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

// writeForever commits changes of which every row tells the same number, and prints
// each number once its commit has returned.
func writeForever(dir string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, dir)
	if err != nil {
		return err
	}
	for {
		ep, err := s.Endpoint(ctx, "ep_1")
		if errors.Is(err, rollout.ErrNotFound) {
			ep, err = storetest.Endpoint("ep_1", "chat"), nil
		}
		if err != nil {
			return err
		}
		ep.Generation++
		n := fmt.Sprint(ep.Generation)
		r := storetest.Rollout("rol_"+n, "ep_1", rollout.Completed)
		change := rollout.Change{
			Endpoints: []rollout.Endpoint{ep}, Rollouts: []rollout.Rollout{r},
			Events:  []rollout.Event{{EndpointID: "ep_1", Type: "x", Message: n, At: time.Now()}},
			Answers: []rollout.Answer{{Key: n, Subject: r.ID, At: time.Now()}},
		}
		if err := s.Commit(ctx, change); err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(ep.Generation); err != nil {
			return err
		}
	}
}

func TestKillInTheMidstOfCommitsLeavesNoHalfChange(t *testing.T) {
	dir := t.TempDir()
	var told uint64
	for round := range 6 {
		told = max(told, killedWriter(t, dir, 8+round*5))
		s, err := store.Open(t.Context(), dir)
		require.NoError(t, err)
		ep, err := s.Endpoint(t.Context(), "ep_1")
		require.NoError(t, err)
		require.GreaterOrEqual(t, ep.Generation, told, "what Commit reported is kept")
		require.EqualValues(t, ep.Generation, ep.Version)
		rollouts, err := s.Rollouts(t.Context(), "ep_1")
		require.NoError(t, err)
		events, _, err := s.Events(t.Context(), rollout.EventQuery{EndpointID: "ep_1", Limit: 100000})
		require.NoError(t, err)
		require.Len(t, rollouts, int(ep.Generation))
		require.Len(t, events, int(ep.Generation))
		_, err = s.Answer(t.Context(), fmt.Sprint(ep.Generation))
		require.NoError(t, err)
		_, err = s.Answer(t.Context(), fmt.Sprint(ep.Generation+1))
		require.ErrorIs(t, err, rollout.ErrNotFound)
		require.NoError(t, s.Close())
	}
	t.Logf("measured: %d commits kept over 6 kills", told)
}

// killedWriter runs a writer in the folder, kills it after it told so many commits,
// and returns the last number that it told.
func killedWriter(t *testing.T, dir string, after int) uint64 {
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
	var n uint64
	for range after {
		require.NoError(t, dec.Decode(&n))
	}
	require.NoError(t, cmd.Process.Kill())
	for { // it wrote on until the signal came
		if err := dec.Decode(&n); err != nil {
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
			break
		}
	}
	require.Error(t, cmd.Wait())
	return n
}
