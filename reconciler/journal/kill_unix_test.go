//go:build unix

package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
)

// writerOn names the journal on which a re-executed test binary writes until it is
// killed.
const writerOn = "SLUICE_JOURNAL_WRITER"

func TestMain(m *testing.M) {
	if where := os.Getenv(writerOn); where != "" {
		fmt.Fprintln(os.Stderr, writeForever(where))
		os.Exit(1)
	}
	code := m.Run()
	if c := startedCluster; c != nil {
		c.stop()
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func openAt(ctx context.Context, where string) (journal.Journal, error) {
	if strings.HasPrefix(where, "postgres:") {
		return journal.OpenPostgres(ctx, where)
	}
	return journal.OpenSQLite(where)
}

// writeForever commits batches of which every part tells the same number, and prints
// each number once its commit has returned.
func writeForever(where string) error {
	ctx := context.Background()
	j, err := openAt(ctx, where)
	if err != nil {
		return err
	}
	l, err := j.Acquire(ctx, journal.Holder{ID: fmt.Sprint(os.Getpid())}, time.Now(), time.Nanosecond)
	if err != nil {
		return err
	}
	n, err := counted(ctx, j)
	out := json.NewEncoder(os.Stdout)
	for err == nil {
		n++
		if err = j.Commit(ctx, l.Fence, numbered(n)); err == nil {
			err = out.Encode(n)
		}
	}
	return err
}

// numbered is the batch of a number: it ends the intent of the one before.
func numbered(n int) journal.Batch {
	text := fmt.Sprint(n)
	b := journal.Batch{
		Begin:   []journal.Intent{{ID: text, At: time.Unix(int64(n), 0)}},
		Entries: []journal.Entry{{Text: text}, {Text: text}},
		Put:     []journal.Record{{Key: journal.Key{Kind: "n"}, Value: []byte(text)}, {Key: journal.Key{Kind: "of", Name: text}, Value: []byte(text)}},
		Delete:  []journal.Key{{Kind: "of", Name: fmt.Sprint(n - 1)}},
	}
	if n > 1 {
		b.End = []journal.Outcome{{Intent: fmt.Sprint(n - 1), Result: "done"}}
	}
	return b
}

func counted(ctx context.Context, j journal.Journal) (n int, err error) {
	text, err := j.Get(ctx, journal.Key{Kind: "n"})
	if errors.Is(err, journal.ErrNone) {
		return 0, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	return n, err
}

// E5, E7: whatever was being written when the process died is there whole or not at all.
func TestKillInTheMidstOfCommitsLeavesNoHalfBatch(t *testing.T) {
	for name, where := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return filepath.Join(t.TempDir(), "journal.db") },
		"PostgreSQL": postgres,
	} {
		t.Run(name, func(t *testing.T) {
			at, told := where(t), 0
			for round := range 6 {
				told = killedWriter(t, at, 20+round*15)
				whole(t, at, told)
			}
			t.Logf("measured: %d commits kept over 6 kills", told)
		})
	}
}

// whole checks that a journal has all that its last batch wrote, which is that of at
// least a number.
func whole(t *testing.T, where string, least int) {
	t.Helper()
	j, err := openAt(t.Context(), where)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	n, err := counted(t.Context(), j)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, least, "what Commit reported is kept")
	open, err := j.Open(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, fmt.Sprint(n), open[0].ID)
	var texts []string
	for e, err := range j.History(t.Context(), journal.Query{}) {
		require.NoError(t, err)
		texts = append(texts, e.Text)
	}
	require.Len(t, texts, 2*n)
	require.Equal(t, []string{fmt.Sprint(n), fmt.Sprint(n)}, texts[:2])
	for r, err := range j.List(t.Context(), journal.Key{Kind: "of"}) {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(n), r.Key.Name)
	}
}

// killedWriter runs a writer, kills it after it told so many commits, and returns the
// last number that it told.
func killedWriter(t *testing.T, where string, after int) (last int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), writerOn+"="+where)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	dec := json.NewDecoder(out)
	for range after {
		require.NoError(t, dec.Decode(&last))
	}
	require.NoError(t, cmd.Process.Kill())
	for { // it wrote on until the signal came
		n := 0
		if err := dec.Decode(&n); err != nil {
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
			break
		}
		last = n
	}
	require.Error(t, cmd.Wait())
	return last
}
