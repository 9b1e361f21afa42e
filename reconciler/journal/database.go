package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// database is the journal in SQL, the same for both databases. What they differ in is
// in the dialect.
type database struct {
	write *sql.DB // SQLite: one connection, so that writers queue here instead of failing as busy
	read  *sql.DB
	dialect
}

// dialect is what the two databases do not say in the same words.
type dialect struct {
	lock      string            // behind a SELECT whose row nobody else may change
	numbered  bool              // placeholders are $1, $2 instead of ?
	translate func(error) error // a failure of the disk or the server as ErrUnavailable
	undo      func(*sql.Conn)   // what is left to do when a COMMIT has failed
}

// words is a query as the database wants it. Queries are written with ?.
func (d dialect) words(query string) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// Close ends the connections.
func (d *database) Close() error {
	if d.read == d.write {
		return d.write.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// writer runs the statements of one transaction and keeps the first error.
type writer struct {
	ctx context.Context //nolint:containedctx // lives for one call of inTx
	tx  *sql.Tx
	d   dialect
	err error
}

// exec runs a statement and returns how many rows it changed.
func (w *writer) exec(query string, args ...any) int64 {
	if w.err != nil {
		return 0
	}
	res, err := w.tx.ExecContext(w.ctx, w.d.words(query), args...)
	if err != nil {
		w.err = w.d.translate(err)
		return 0
	}
	n, err := res.RowsAffected()
	if err != nil {
		w.err = w.d.translate(err)
	}
	return n
}

// inTx runs a write in one transaction.
func (d *database) inTx(ctx context.Context, do func(*writer)) error {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("begin a write: %w", d.translate(err))
	}
	defer func() { _ = conn.Close() }() // gives it back
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a write: %w", d.translate(err))
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	w := &writer{ctx: ctx, tx: tx, d: d.dialect}
	if do(w); w.err != nil {
		return w.err
	}
	if err := tx.Commit(); err != nil {
		d.undo(conn)
		return fmt.Errorf("commit: %w", d.translate(err))
	}
	return nil
}

// fenced runs a write under a fence: it is compared in the transaction of the write, with
// the row locked, so that nobody takes the lease between the look and the COMMIT.
func (d *database) fenced(ctx context.Context, f Fence, do func(*writer)) error {
	return d.inTx(ctx, func(w *writer) {
		if l := w.lease(); w.err == nil && l.Fence != f {
			w.err = &Fenced{Mine: f, Newest: l.Fence}
		}
		if w.err == nil {
			do(w)
		}
	})
}

// noTime stands for the zero time.
const noTime = math.MinInt64

// stamp is how an instant is stored: nanoseconds, and the nearest that fits of one that
// does not.
func stamp(t time.Time) int64 {
	switch s := t.Unix(); {
	case t.IsZero(), s <= math.MinInt64/int64(time.Second):
		return noTime
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func instant(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
