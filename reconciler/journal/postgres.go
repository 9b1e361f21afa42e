package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// schema is where the tables are when the address does not name a search_path.
const schema = "sluice_reconciler"

// OpenPostgres opens or makes the journal in a database, in the schema sluice_reconciler
// or in that of the address's search_path, and brings it up to date. Two reconcilers of
// different engines take different schemas: a journal has one writer.
func OpenPostgres(ctx context.Context, url string) (Journal, error) {
	d, err := openPostgres(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("the journal in PostgreSQL: %w", err)
	}
	return d, nil
}

func openPostgres(ctx context.Context, url string) (*database, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err // without the password
	}
	params := config.RuntimeParams
	for name, value := range map[string]string{
		"search_path": schema, "synchronous_commit": "on", "application_name": "sluice reconcile",
		// A process that is frozen within a transaction must not hold the lease's row for ever.
		"idle_in_transaction_session_timeout": "30s", "lock_timeout": "10s",
	} {
		if params[name] == "" {
			params[name] = value
		}
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(readers + 1)
	db.SetMaxIdleConns(readers + 1)
	if err := makeSchema(ctx, db, params["search_path"]); err != nil {
		return nil, errors.Join(inPostgres(err), db.Close())
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := migrate(ctx, db, goose.DialectPostgres, "postgres", goose.WithSessionLocker(locker)); err != nil {
		return nil, errors.Join(inPostgres(err), db.Close())
	}
	return &database{write: db, read: db, dialect: dialect{lock: " FOR UPDATE", numbered: true, translate: inPostgres, undo: func(*sql.Conn) {}}}, nil
}

// makeSchema makes the schema when it is not there; one that is there needs no right to
// make another.
func makeSchema(ctx context.Context, db *sql.DB, name string) error {
	var there bool
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", name).Scan(&there); err != nil {
		return err
	}
	if there {
		return nil
	}
	_, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{name}.Sanitize())
	var e *pgconn.PgError
	if errors.As(err, &e) && slices.Contains([]string{"23505", "42P06"}, e.Code) { // another start has just made it
		return nil
	}
	return err
}

// inPostgres makes what a later try may mend ErrUnavailable: a connection that fails, and
// of the server's refusals want of resources, shutdown, failure of its disk, a standby, a
// lock or a deadlock.
func inPostgres(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if slices.Contains([]string{"08", "40", "53", "57", "58"}, e.Code[:min(2, len(e.Code))]) || slices.Contains([]string{"25006", "25P03", "55P03"}, e.Code) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
