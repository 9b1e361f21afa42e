package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// A store has one writer: whoever opened it last. Each Open takes the lease with a higher
// token, and each write compares the token in its own transaction, so that a process that
// was frozen, and wakes up after another took its place, writes nothing (argo-rollouts#2117).
// The token does not expire: a start after a crash waits for nobody. What keeps two healthy
// engines apart is the lock of the data folder, which the composition root takes first.

// me names this process to whoever finds the lease taken.
func me() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("process %d on %s since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
}

// lease takes the store over from whoever had it.
func (s *SQLite) lease(ctx context.Context, holder string) error {
	row := s.write.QueryRowContext(ctx, "UPDATE lease SET token = token + 1, holder = ? RETURNING token", holder)
	if err := row.Scan(&s.token); err != nil {
		return fmt.Errorf("take the store's lease: %w", translate(err))
	}
	return nil
}

// Held fails with rollout.ErrFenced once another holder has taken the store over. It is
// asked before what cannot be in a transaction: a call to the fleet or to the routers.
func (s *SQLite) Held(ctx context.Context) error { return s.held(ctx, s.read) }

// rower is what reads one row: a database or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (s *SQLite) held(ctx context.Context, from rower) error {
	var token int64
	var holder string
	if err := from.QueryRowContext(ctx, "SELECT token, holder FROM lease").Scan(&token, &holder); err != nil {
		return fmt.Errorf("read the store's lease: %w", err)
	}
	if token != s.token {
		return fmt.Errorf("%w: %s has it; this one writes nothing any more and is to be ended", rollout.ErrFenced, holder)
	}
	return nil
}

// TakeOver is another handle of the same store that holds the lease from now on, as a
// second process has it: this one is fenced off. Only this one is to be closed.
func (s *SQLite) TakeOver(ctx context.Context, holder string) (*SQLite, error) {
	other := &SQLite{write: s.write, read: s.read}
	return other, other.lease(ctx, holder)
}

// Holder names who took the lease of the store in a folder last: a process and since
// when. It is empty when nobody ever did.
func Holder(ctx context.Context, dir string) (holder string, err error) {
	path := filepath.Join(dir, "sluice.db")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find the store: %w", err)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(1000)")
	if err != nil {
		return "", fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, "SELECT holder FROM lease").Scan(&holder); err != nil {
		return "", fmt.Errorf("read the store's lease: %w", err)
	}
	return holder, nil
}
