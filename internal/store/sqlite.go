package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver
)

//go:embed migrations/*.sql
var migrations embed.FS

// SQLite is a store in one file of a data folder.
type SQLite struct {
	write *sql.DB // one connection: writers queue here instead of failing as busy
	read  *sql.DB
	group group
	token int64 // of the lease that this handle writes under
}

// Open opens or makes the store in a folder, which must exist, and brings its
// schema up to date. A file that is not a store, or one of a newer version of the
// schema, is refused and left as it is. From then on the store is its own: a handle that
// was opened before is fenced off.
func Open(ctx context.Context, dir string) (*SQLite, error) {
	path := filepath.Join(dir, "sluice.db")
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?"
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if err := checkOurs(ctx, dsn+"mode=rw"); err != nil {
			return nil, err
		}
	}
	s, err := open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := s.lease(ctx, me()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkOurs refuses a file that something else wrote, before a pragma or a migration
// can change it.
func checkOurs(ctx context.Context, dsn string) (err error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var all, ours int
	const count = "SELECT count(*), count(CASE WHEN name IN ('goose_db_version', 'rollouts') THEN 1 END) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if err := db.QueryRowContext(ctx, count).Scan(&all, &ours); err != nil {
		return fmt.Errorf("the store cannot be read; is sluice.db a file of Sluice's? %w", err)
	}
	// A start that was killed before its first migration leaves one table of ours.
	if all > ours && ours < 2 {
		return errors.New("sluice.db is a database, but not a store of Sluice's; give another data folder")
	}
	return nil
}

// readers is how many reads may run beside the writer.
const readers = 4

func open(ctx context.Context, dsn string) (*SQLite, error) {
	return openOn(ctx, dsn+"_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_txlock=immediate", manyReaders)
}

// connections says how a store reads.
type connections int

const (
	manyReaders   connections = iota // beside the one that writes
	oneConnection                    // which reads and writes
)

func openOn(ctx context.Context, dsn string, c connections) (*SQLite, error) {
	write, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	write.SetMaxOpenConns(1)
	if err := migrate(ctx, write); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	if c == oneConnection {
		return &SQLite{write: write, read: write}, nil
	}
	read, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return &SQLite{write: write, read: read}, nil
}

func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the store's version: %w", err)
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; have > newest {
		return fmt.Errorf("the store has schema %d and this sluice knows up to %d; run the newer one that wrote it", have, newest)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("bring the store up to date: %w", err)
	}
	return nil
}

// Close ends the store's connections.
func (s *SQLite) Close() error {
	if s.read == s.write {
		return s.write.Close()
	}
	return errors.Join(s.read.Close(), s.write.Close())
}

// Ping reports whether the store answers.
func (s *SQLite) Ping(ctx context.Context) error { return s.read.PingContext(ctx) }
