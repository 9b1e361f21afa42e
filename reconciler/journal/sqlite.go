package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
)

// OpenSQLite opens or makes the journal in a file, whose folder must exist, and brings
// its schema up to date. A new file is readable by its owner only. A file that is not a
// journal, or one of a newer schema, is refused and left as it is.
func OpenSQLite(path string) (Journal, error) {
	d, err := openSQLite(context.Background(), path)
	if err != nil {
		return nil, fmt.Errorf("the journal %s: %w", path, err)
	}
	return d, nil
}

// readers is how many reads may run beside the writer.
const readers = 4

func openSQLite(ctx context.Context, path string) (*database, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := "file:" + (&url.URL{Path: full}).EscapedPath() + "?_pragma=busy_timeout(10000)"
	if err := ready(ctx, full, dsn+"&mode=rw"); err != nil {
		return nil, err
	}
	dsn += "&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	write, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	if err := migrate(ctx, write, goose.DialectSQLite3, "sqlite"); err != nil {
		return nil, errors.Join(inSQLite(err), write.Close())
	}
	read, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return &database{write: write, read: read, dialect: dialect{translate: inSQLite, undo: func(c *sql.Conn) {
		// SQLite keeps a transaction open whose commit failed, for example for want
		// of space, and this is the only connection that writes.
		_, _ = c.ExecContext(context.Background(), "ROLLBACK")
	}}}, nil
}

// ready makes an empty file that only its owner reads, or looks whether the one that is
// there is ours.
func ready(ctx context.Context, path, dsn string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; its folder must exist and be writable", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case info.Size() == 0:
		return nil
	}
	return checkOurs(ctx, dsn)
}

// checkOurs refuses a file that something else wrote, before a pragma or a migration
// can change it.
func checkOurs(ctx context.Context, dsn string) (err error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var all, ours int
	const count = "SELECT count(*), count(CASE WHEN name IN ('goose_db_version', 'intents') THEN 1 END) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	if err := db.QueryRowContext(ctx, count).Scan(&all, &ours); err != nil {
		return fmt.Errorf("it cannot be read; is it a file of the reconciler's, and whole? %w", err)
	}
	// A start that was killed before its first migration leaves one table of ours.
	if all > ours && ours < 2 {
		return errors.New("it is a database, but not a journal of the reconciler's; give another path")
	}
	return nil
}

// inSQLite makes a full, failing, locked or unwritable disk ErrUnavailable.
func inSQLite(err error) error {
	const busy, locked, readOnly, ioError, full, cantOpen = 5, 6, 8, 10, 13, 14
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case busy, locked, readOnly, ioError, full, cantOpen:
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return err
}
