//go:build unix

package journal_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal"
	"github.com/sluice-dev/terraform-provider-sluice/reconciler/journal/journaltest"
)

func TestPostgresConforms(t *testing.T) {
	journaltest.Suite(t, func(t *testing.T) journaltest.Opener {
		url := postgres(t)
		return func(t *testing.T) journal.Journal {
			j, err := journal.OpenPostgres(t.Context(), url)
			require.NoError(t, err)
			return j
		}
	})
}

func TestManyStartsOnAnEmptyDatabaseAllFindAJournal(t *testing.T) {
	url := postgres(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			var j journal.Journal
			if j, errs[i] = journal.OpenPostgres(t.Context(), url); errs[i] == nil {
				errs[i] = j.Close()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestTwoSchemasOfOneDatabaseAreTwoJournals(t *testing.T) {
	url := postgres(t)
	onPostgres(t, url, "CREATE TABLE public.intents (somebody TEXT)", "CREATE SCHEMA europe")
	fences := map[string]journal.Fence{}
	for _, path := range []string{"", "&search_path=europe", "&search_path=Odd%20name"} {
		j, err := journal.OpenPostgres(t.Context(), url+path)
		require.NoError(t, err, path)
		l, err := j.Acquire(t.Context(), journal.Holder{ID: "r" + path}, time.Unix(1, 0), time.Minute)
		require.NoError(t, err, path)
		fences[path] = l.Fence
		require.NoError(t, j.Close())
	}
	require.Equal(t, map[string]journal.Fence{"": 1, "&search_path=europe": 1, "&search_path=Odd%20name": 1}, fences)
}

func TestANewerSchemaInPostgresIsRefused(t *testing.T) {
	url := postgres(t)
	j, err := journal.OpenPostgres(t.Context(), url)
	require.NoError(t, err)
	require.NoError(t, j.Close())
	onPostgres(t, url, "INSERT INTO sluice_reconciler.goose_db_version (version_id, is_applied) VALUES (9999, true)")
	_, err = journal.OpenPostgres(t.Context(), url)
	require.ErrorContains(t, err, "schema 9999")
}

func TestAnAddressThatDoesNotAnswerIsToldWithoutItsPassword(t *testing.T) {
	for _, url := range []string{"postgres://user:geheim@127.0.0.1:1/db?connect_timeout=2", "postgres://user:geheim@[::1/db"} {
		_, err := journal.OpenPostgres(t.Context(), url)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "geheim")
	}
}

// A frozen process may have stopped within a transaction, with the lease's row locked.
func TestAProcessFrozenWithinAWriteDoesNotHoldTheOthersForEver(t *testing.T) {
	url := postgres(t)
	j, err := journal.OpenPostgres(t.Context(), url+"&lock_timeout=50ms")
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	frozen, err := sql.Open("pgx", url)
	require.NoError(t, err)
	defer func() { _ = frozen.Close() }()
	tx, err := frozen.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '300ms'")
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "SELECT * FROM sluice_reconciler.lease FOR UPDATE")
	require.NoError(t, err)
	_, err = j.Acquire(t.Context(), journal.Holder{ID: "b"}, time.Unix(1, 0), time.Minute)
	require.ErrorIs(t, err, journal.ErrUnavailable)
	require.Eventually(t, func() bool {
		_, err := j.Acquire(t.Context(), journal.Holder{ID: "b"}, time.Unix(1, 0), time.Minute)
		return err == nil
	}, 20*time.Second, 20*time.Millisecond, "the server ends the frozen session")
	require.Error(t, tx.Commit())
}

func TestADatabaseThatGoesAwayIsUnavailableAndNotGone(t *testing.T) {
	url := postgres(t)
	j, err := journal.OpenPostgres(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	l, err := j.Acquire(t.Context(), journal.Holder{ID: "a"}, time.Unix(1, 0), time.Minute)
	require.NoError(t, err)
	name := url[strings.LastIndex(url, "/journal_")+1 : strings.Index(url, "?")]
	admin := startCluster().url("postgres")
	onPostgres(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	b := journal.Batch{Put: []journal.Record{{Key: journal.Key{Kind: "k"}, Value: []byte("v")}}}
	err = j.Commit(t.Context(), l.Fence, b)
	require.ErrorIs(t, err, journal.ErrUnavailable)
	_, err = j.Get(t.Context(), b.Put[0].Key)
	require.ErrorIs(t, err, journal.ErrUnavailable)
	onPostgres(t, admin, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
	require.NoError(t, j.Commit(context.WithoutCancel(t.Context()), l.Fence, b))
}
