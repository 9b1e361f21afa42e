package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// inTx runs a write in one transaction, which is nobody's but the lease holder's.
func (s *SQLite) inTx(ctx context.Context, do func(*writer)) error {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return fmt.Errorf("begin a write: %w", translate(err))
	}
	defer func() { _ = conn.Close() }() // gives it back
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a write: %w", translate(err))
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	w := &writer{ctx: ctx, tx: tx, err: s.held(ctx, tx)}
	if do(w); w.err != nil {
		return w.err
	}
	if err := tx.Commit(); err != nil {
		// SQLite keeps a transaction open whose commit failed, for example for want
		// of space, and this is the only connection that writes.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return fmt.Errorf("commit: %w", translate(err))
	}
	return nil
}

// statement is one step of a write, with everything encoded: the transaction is for
// the database alone.
type statement struct {
	query string
	args  []any
	check check
	id    string // of the row, for the error
}

// check is what a statement must find.
type check int

const (
	anyRows   check = iota // nothing in particular
	oneRow                 // exactly one row to change, otherwise it is a conflict
	atVersion              // a version that is the last argument; the query reads it
)

// encode makes a change's statements. Deletes come first, so that a name is free again;
// rows that need an endpoint come after it.
func encode(c rollout.Change) ([]statement, error) {
	var e encoder
	for _, ref := range c.Require {
		e.add(statement{query: "SELECT version FROM " + tables[ref.Kind] + " WHERE id = ?", args: []any{ref.ID, ref.Version}, check: atVersion, id: ref.ID})
	}
	for _, ref := range c.Delete {
		e.delete(ref)
	}
	for _, k := range c.Keys {
		k.Version++
		e.row("keys", k.ID, k.Version-1, k, column{"hash", k.Hash}, column{"created", nanos(k.CreatedAt)})
	}
	for _, ep := range c.Endpoints {
		ep.Version++
		e.row("endpoints", ep.ID, ep.Version-1, ep, column{"project", ep.ProjectID}, column{"name", ep.Name}, column{"created", nanos(ep.CreatedAt)})
	}
	for _, d := range c.Deployments {
		d.Version++
		e.row("deployments", d.ID, d.Version-1, d, column{"endpoint", d.EndpointID}, column{"name", d.Name}, column{"created", nanos(d.CreatedAt)})
	}
	for _, r := range c.Rollouts {
		r.Version++
		open := 1
		if r.State.Terminal() {
			open = 0
		}
		e.row("rollouts", r.ID, r.Version-1, r, column{"endpoint", r.EndpointID}, column{"open", open}, column{"created", nanos(r.CreatedAt)})
	}
	for _, ev := range c.Events {
		e.event(ev)
	}
	for _, a := range c.Answers {
		e.add(statement{query: "INSERT INTO answers (key, digest, subject, at) VALUES (?, ?, ?, ?)", args: []any{a.Key, a.Digest, a.Subject, nanos(a.At)}})
	}
	return e.out, e.err
}

// encoder keeps the first error, so that a change reads as a list.
type encoder struct {
	out []statement
	err error
}

func (e *encoder) add(s statement) { e.out = append(e.out, s) }

type column struct {
	name  string
	value any
}

// row inserts a new row or replaces the one of the version that was read.
func (e *encoder) row(table, id string, version int64, body any, columns ...column) {
	text, err := json.Marshal(body)
	if err != nil {
		e.err = cmp.Or(e.err, fmt.Errorf("encode %s: %w", id, err))
		return
	}
	names, marks, sets, args := []string{}, []string{}, []string{}, []any{}
	for _, c := range append(columns, column{"body", string(text)}, column{"version", version + 1}) {
		names, marks, sets, args = append(names, c.name), append(marks, "?"), append(sets, c.name+" = ?"), append(args, c.value)
	}
	if version == 0 {
		e.add(statement{query: "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ", id) VALUES (" + strings.Join(marks, ", ") + ", ?)", args: append(args, id)})
		return
	}
	e.add(statement{query: "UPDATE " + table + " SET " + strings.Join(sets, ", ") + " WHERE id = ? AND version = ?", args: append(args, id, version), check: oneRow, id: id})
}

var tables = map[rollout.Kind]string{
	rollout.KindEndpoint: "endpoints", rollout.KindDeployment: "deployments",
	rollout.KindRollout: "rollouts", rollout.KindKey: "keys",
}

func (e *encoder) delete(ref rollout.Ref) {
	if ref.Version == 0 {
		e.add(statement{query: "DELETE FROM " + tables[ref.Kind] + " WHERE id = ?", args: []any{ref.ID}})
		return
	}
	e.add(statement{query: "DELETE FROM " + tables[ref.Kind] + " WHERE id = ? AND version = ?", args: []any{ref.ID, ref.Version}, check: oneRow, id: ref.ID})
}

var levels = map[rollout.Level]int{rollout.LevelDebug: 0, rollout.LevelInfo: 1, rollout.LevelWarn: 2, rollout.LevelError: 3}

func (e *encoder) event(ev rollout.Event) {
	text, err := json.Marshal(ev)
	if err != nil {
		e.err = cmp.Or(e.err, fmt.Errorf("encode event %s: %w", ev.Type, err))
		return
	}
	e.add(statement{
		query: "INSERT INTO events (endpoint, deployment, subject, type, level, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
		args:  []any{ev.EndpointID, ev.Deployment, ev.Subject, string(ev.Type), levels[ev.Level], nanos(ev.At), string(text)},
	})
}

// writer runs statements of one transaction and keeps the first error.
type writer struct {
	ctx context.Context //nolint:containedctx // lives for one call of inTx
	tx  *sql.Tx
	err error
}

func (w *writer) run(statements []statement) {
	for _, s := range statements {
		if w.err != nil {
			return
		}
		switch s.check {
		case atVersion:
			w.require(s)
		case oneRow:
			w.one(s)
		case anyRows:
			w.exec(s.query, s.args...)
		}
	}
}

// require fails the change when a row is not at its version any more.
func (w *writer) require(s statement) {
	var version int64
	err := w.tx.QueryRowContext(w.ctx, s.query, s.args[0]).Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && version != s.args[1]:
		w.err = fmt.Errorf("%s: %w", s.id, rollout.ErrConflict)
	case err != nil:
		w.err = fmt.Errorf("read: %w", err)
	}
}

// one runs a statement that must touch exactly one row.
func (w *writer) one(s statement) {
	res, err := w.tx.ExecContext(w.ctx, s.query, s.args...)
	if err != nil {
		w.err = translate(err)
		return
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		w.err = errors.Join(fmt.Errorf("%s: %w", s.id, rollout.ErrConflict), err)
	}
}

func (w *writer) exec(query string, args ...any) {
	if w.err != nil {
		return
	}
	if _, err := w.tx.ExecContext(w.ctx, query, args...); err != nil {
		w.err = translate(err)
	}
}

// nanos is how an instant is stored; one that does not fit is the nearest that does.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// translate makes a full or unwritable disk, and a broken uniqueness a domain error, and so a row whose endpoint
// went or got a row while this write was made.
func translate(err error) error {
	const constraintForeignKey, constraintPrimaryKey, constraintUnique = 787, 1555, 2067
	const readOnly, ioError, full = 8, 10, 13
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("write: %w", err)
	}
	switch e.Code() {
	case constraintUnique, constraintPrimaryKey:
		return fmt.Errorf("%w: %w", rollout.ErrExists, err)
	case constraintForeignKey:
		return fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	if primary := e.Code() & 0xff; primary == readOnly || primary == ioError || primary == full {
		return fmt.Errorf("%w: %w", rollout.ErrUnavailable, err)
	}
	return fmt.Errorf("write: %w", err)
}

// SaveSlots keeps closed slots of the meter and drops those that began before
// keep. A slot that is kept already stays as it is.
func (s *SQLite) SaveSlots(ctx context.Context, slots []rollout.MeterSlot, keep time.Time) error {
	return s.inTx(ctx, func(w *writer) {
		for _, slot := range slots {
			w.exec("INSERT OR IGNORE INTO meter_slots (key, start, data) VALUES (?, ?, ?)", slot.Key, nanos(slot.Start), slot.Data)
		}
		w.exec(dropSlotsBefore, nanos(keep))
	})
}

// ForgetAnswers drops idempotency answers that were made before an instant.
func (s *SQLite) ForgetAnswers(ctx context.Context, before time.Time) error {
	return s.inTx(ctx, func(w *writer) { w.exec(forgetAnswersBefore, nanos(before)) })
}
