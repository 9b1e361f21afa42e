package store

import (
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

// Commit writes a change, all of it or nothing. It returns ErrConflict when a row
// was changed since it was read, and ErrExists when a new one's name, or an
// endpoint's rollout slot, is taken.
func (s *SQLite) Commit(ctx context.Context, c rollout.Change) error {
	return s.inTx(ctx, func(w *writer) { w.all(c) })
}

// inTx runs a write in one transaction.
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
	w := &writer{ctx: ctx, tx: tx}
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

// all writes a change. Deletes come first, so that a name is free again; rows that
// need an endpoint come after it.
func (w *writer) all(c rollout.Change) {
	for _, ref := range c.Require {
		w.require(ref)
	}
	for _, ref := range c.Delete {
		w.delete(ref)
	}
	for _, k := range c.Keys {
		k.Version++
		w.row("keys", k.ID, k.Version-1, k, column{"hash", k.Hash}, column{"created", nanos(k.CreatedAt)})
	}
	for _, e := range c.Endpoints {
		e.Version++
		w.row("endpoints", e.ID, e.Version-1, e, column{"project", e.ProjectID}, column{"name", e.Name}, column{"created", nanos(e.CreatedAt)})
	}
	for _, d := range c.Deployments {
		d.Version++
		w.row("deployments", d.ID, d.Version-1, d, column{"endpoint", d.EndpointID}, column{"name", d.Name}, column{"created", nanos(d.CreatedAt)})
	}
	for _, r := range c.Rollouts {
		r.Version++
		open := 1
		if r.State.Terminal() {
			open = 0
		}
		w.row("rollouts", r.ID, r.Version-1, r, column{"endpoint", r.EndpointID}, column{"open", open}, column{"created", nanos(r.CreatedAt)})
	}
	for _, e := range c.Events {
		w.event(e)
	}
	for _, a := range c.Answers {
		w.exec("INSERT INTO answers (key, digest, subject, at) VALUES (?, ?, ?, ?)", a.Key, a.Digest, a.Subject, nanos(a.At))
	}
}

// writer keeps the first error, so that a change reads as a list.
type writer struct {
	ctx context.Context //nolint:containedctx // lives for one call of Commit
	tx  *sql.Tx
	err error
}

type column struct {
	name  string
	value any
}

// row inserts a new row or replaces the one of the version that was read.
func (w *writer) row(table, id string, version int64, body any, columns ...column) {
	if w.err != nil {
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		w.err = fmt.Errorf("encode %s: %w", id, err)
		return
	}
	names, marks, sets, args := []string{}, []string{}, []string{}, []any{}
	for _, c := range append(columns, column{"body", string(text)}, column{"version", version + 1}) {
		names, marks, sets, args = append(names, c.name), append(marks, "?"), append(sets, c.name+" = ?"), append(args, c.value)
	}
	if version == 0 {
		w.exec("INSERT INTO "+table+" ("+strings.Join(names, ", ")+", id) VALUES ("+strings.Join(marks, ", ")+", ?)", append(args, id)...)
		return
	}
	w.one(id, "UPDATE "+table+" SET "+strings.Join(sets, ", ")+" WHERE id = ? AND version = ?", append(args, id, version)...)
}

var tables = map[rollout.Kind]string{
	rollout.KindEndpoint: "endpoints", rollout.KindDeployment: "deployments",
	rollout.KindRollout: "rollouts", rollout.KindKey: "keys",
}

func (w *writer) delete(ref rollout.Ref) {
	if ref.Version == 0 {
		w.exec("DELETE FROM "+tables[ref.Kind]+" WHERE id = ?", ref.ID)
		return
	}
	w.one(ref.ID, "DELETE FROM "+tables[ref.Kind]+" WHERE id = ? AND version = ?", ref.ID, ref.Version)
}

// require fails the change when a row is not at its version any more.
func (w *writer) require(ref rollout.Ref) {
	if w.err != nil {
		return
	}
	var version int64
	err := w.tx.QueryRowContext(w.ctx, "SELECT version FROM "+tables[ref.Kind]+" WHERE id = ?", ref.ID).Scan(&version)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && version != ref.Version:
		w.err = fmt.Errorf("%s: %w", ref.ID, rollout.ErrConflict)
	case err != nil:
		w.err = fmt.Errorf("read: %w", err)
	}
}

var levels = map[rollout.Level]int{rollout.LevelDebug: 0, rollout.LevelInfo: 1, rollout.LevelWarn: 2, rollout.LevelError: 3}

func (w *writer) event(e rollout.Event) {
	if w.err != nil {
		return
	}
	text, err := json.Marshal(e)
	if err != nil {
		w.err = fmt.Errorf("encode event %s: %w", e.Type, err)
		return
	}
	w.exec("INSERT INTO events (endpoint, deployment, subject, type, level, at, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
		e.EndpointID, e.Deployment, e.Subject, string(e.Type), levels[e.Level], nanos(e.At), string(text))
}

// one runs a statement that must touch exactly one row.
func (w *writer) one(id, query string, args ...any) {
	if w.err != nil {
		return
	}
	res, err := w.tx.ExecContext(w.ctx, query, args...)
	if err != nil {
		w.err = translate(err)
		return
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		w.err = errors.Join(fmt.Errorf("%s: %w", id, rollout.ErrConflict), err)
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
		w.exec("DELETE FROM meter_slots WHERE start < ?", nanos(keep))
	})
}

// ForgetAnswers drops idempotency answers that were made before an instant.
func (s *SQLite) ForgetAnswers(ctx context.Context, before time.Time) error {
	if _, err := s.write.ExecContext(ctx, "DELETE FROM answers WHERE at < ?", nanos(before)); err != nil {
		return fmt.Errorf("forget answers: %w", err)
	}
	return nil
}
