package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
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
	name, err := prepare(config.RuntimeParams)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(readers + 1)
	db.SetMaxIdleConns(readers + 1)
	if err := upToDate(ctx, db, name); err != nil {
		return nil, errors.Join(inPostgres(err), db.Close())
	}
	return &database{write: db, read: db, dialect: dialect{lock: " FOR UPDATE", numbered: true, translate: inPostgres, undo: func(*sql.Conn) {}}}, nil
}

// prepare completes a session's parameters, where the address does not give them, and
// returns the name of the schema.
func prepare(params map[string]string) (name string, err error) {
	for name, value := range map[string]string{
		"search_path": schema, "synchronous_commit": "on", "application_name": "sluice reconcile",
		// A process that is frozen within a transaction must not hold the lease's row for ever.
		"idle_in_transaction_session_timeout": "30s", "lock_timeout": "10s",
	} {
		if params[name] == "" {
			params[name] = value
		}
	}
	name = strings.Trim(params["search_path"], `"`)
	if strings.ContainsAny(name, `,"`) {
		return "", fmt.Errorf("the search_path %s of the address is not one schema", params["search_path"])
	}
	params["search_path"] = pgx.Identifier{name}.Sanitize()
	return name, nil
}

// upToDate makes the schema and its tables, one start after the other.
func upToDate(ctx context.Context, db *sql.DB, name string) (err error) {
	const lock = "hashtextextended('sluice reconciler journal', 0)"
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock("+lock+")"); err != nil {
		return fmt.Errorf("wait for another start to make the tables: %w", err)
	}
	defer func() {
		_, unlocked := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock("+lock+")")
		err = errors.Join(err, unlocked)
	}()
	if err := makeSchema(ctx, conn, name); err != nil {
		return err
	}
	return migrate(ctx, db, goose.DialectPostgres, "postgres")
}

// makeSchema makes the schema when it is not there; one that is there needs no right to
// make another.
func makeSchema(ctx context.Context, conn *sql.Conn, name string) error {
	var there bool
	if err := conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", name).Scan(&there); err != nil || there {
		return err
	}
	_, err := conn.ExecContext(ctx, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize())
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
	var connecting *pgconn.ConnectError
	if !errors.As(err, &e) || errors.As(err, &connecting) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if slices.Contains([]string{"08", "40", "53", "57", "58"}, e.Code[:min(2, len(e.Code))]) || slices.Contains([]string{"25006", "25P03", "55P03"}, e.Code) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
