package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-dev/terraform-provider-sluice/internal/rollout"
)

// What is asked again and again for one rollout. Each finds its rows by an index.
const (
	endpointByID        = "SELECT body FROM endpoints WHERE id = ?"
	deploymentByID      = "SELECT body FROM deployments WHERE id = ?"
	deploymentsOf       = "SELECT body FROM deployments WHERE endpoint = ? ORDER BY created DESC, id DESC"
	rolloutByID         = "SELECT body FROM rollouts WHERE id = ?"
	rolloutsOf          = "SELECT body FROM rollouts WHERE endpoint = ? ORDER BY created DESC, id DESC"
	dropSlotsBefore     = "DELETE FROM meter_slots WHERE start < ?"
	forgetAnswersBefore = "DELETE FROM answers WHERE at < ?"
)

// one reads a single record; ErrNotFound when there is none.
func one[T any](ctx context.Context, s *SQLite, query string, args ...any) (T, error) {
	var v T
	var body string
	err := s.read.QueryRowContext(ctx, query, args...).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return v, rollout.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("read: %w", err)
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return v, fmt.Errorf("decode a record: %w", err)
	}
	return v, nil
}

// many reads records in the order of the query.
func many[T any](ctx context.Context, s *SQLite, query string, args ...any) ([]T, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		var body string
		var v T
		if err := rows.Scan(&body); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			return nil, fmt.Errorf("decode a record: %w", err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return out, nil
}

// Endpoint reads one endpoint.
func (s *SQLite) Endpoint(ctx context.Context, id string) (rollout.Endpoint, error) {
	return one[rollout.Endpoint](ctx, s, endpointByID, id)
}

// Endpoints reads all endpoints, newest first.
func (s *SQLite) Endpoints(ctx context.Context) ([]rollout.Endpoint, error) {
	return many[rollout.Endpoint](ctx, s, "SELECT body FROM endpoints ORDER BY created DESC, id DESC")
}

// Deployment reads one deployment.
func (s *SQLite) Deployment(ctx context.Context, id string) (rollout.Deployment, error) {
	return one[rollout.Deployment](ctx, s, deploymentByID, id)
}

// Deployments reads an endpoint's deployments, newest first; all of them for "".
func (s *SQLite) Deployments(ctx context.Context, endpoint string) ([]rollout.Deployment, error) {
	if endpoint == "" {
		return many[rollout.Deployment](ctx, s, "SELECT body FROM deployments ORDER BY created DESC, id DESC")
	}
	return many[rollout.Deployment](ctx, s, deploymentsOf, endpoint)
}

// Rollout reads one rollout.
func (s *SQLite) Rollout(ctx context.Context, id string) (rollout.Rollout, error) {
	return one[rollout.Rollout](ctx, s, rolloutByID, id)
}

// Rollouts reads an endpoint's rollouts, newest first.
func (s *SQLite) Rollouts(ctx context.Context, endpoint string) ([]rollout.Rollout, error) {
	return many[rollout.Rollout](ctx, s, rolloutsOf, endpoint)
}

// OpenRollouts reads every rollout that is not over.
func (s *SQLite) OpenRollouts(ctx context.Context) ([]rollout.Rollout, error) {
	return many[rollout.Rollout](ctx, s, "SELECT body FROM rollouts WHERE open = 1 ORDER BY created, id")
}

// Keys reads all keys, newest first.
func (s *SQLite) Keys(ctx context.Context) ([]rollout.Key, error) {
	return many[rollout.Key](ctx, s, "SELECT body FROM keys ORDER BY created DESC, id DESC")
}

// KeyHashed reads the key with this hash of its secret.
func (s *SQLite) KeyHashed(ctx context.Context, hash string) (rollout.Key, error) {
	return one[rollout.Key](ctx, s, "SELECT body FROM keys WHERE hash = ?", hash)
}

// Answer reads what was made under an idempotency key.
func (s *SQLite) Answer(ctx context.Context, key string) (rollout.Answer, error) {
	var at int64
	a := rollout.Answer{Key: key}
	err := s.read.QueryRowContext(ctx, "SELECT digest, subject, at FROM answers WHERE key = ?", key).Scan(&a.Digest, &a.Subject, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return a, rollout.ErrNotFound
	}
	if err != nil {
		return a, fmt.Errorf("read: %w", err)
	}
	a.At = time.Unix(0, at)
	return a, nil
}

// Events reads rows of a feed in the order that is asked, and the cursor of the next
// page; 0 when there is none.
func (s *SQLite) Events(ctx context.Context, q rollout.EventQuery) ([]rollout.Event, int64, error) {
	where, args := eventConditions(q)
	direction := "DESC"
	if q.Order == rollout.OldestFirst {
		direction = "ASC"
	}
	rows, err := s.read.QueryContext(ctx, "SELECT place, body FROM events WHERE "+where+" ORDER BY place "+direction+" LIMIT ?", append(args, q.Limit+1)...)
	if err != nil {
		return nil, 0, fmt.Errorf("read: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []rollout.Event
	var last int64
	for rows.Next() {
		var place int64
		var body string
		if err := rows.Scan(&place, &body); err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
		if len(out) == q.Limit {
			return out, last, rows.Err()
		}
		var e rollout.Event
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			return nil, 0, fmt.Errorf("decode an event: %w", err)
		}
		e.ID = fmt.Sprintf("evt_%012d", place)
		out, last = append(out, e), place
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("read: %w", err)
	}
	return out, 0, nil
}

func eventConditions(q rollout.EventQuery) (string, []any) {
	where, args := []string{"endpoint = ?"}, []any{q.EndpointID}
	add := func(condition string, values ...any) { where, args = append(where, condition), append(args, values...) }
	in := func(column string, values []string) string {
		for _, v := range values {
			args = append(args, v)
		}
		return column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")"
	}
	if q.Before > 0 {
		add("place < ?", q.Before)
	}
	if q.After > 0 {
		add("place > ?", q.After)
	}
	if len(q.Types) > 0 {
		where = append(where, in("type", q.Types))
	}
	wantEndpoint, wantDeployment := len(q.Kinds) == 0, len(q.Kinds) == 0
	for _, k := range q.Kinds {
		wantEndpoint = wantEndpoint || k == "ENDPOINT"
		wantDeployment = wantDeployment || k == "DEPLOYMENT"
	}
	switch {
	case len(q.Deployments) > 0 && len(q.Kinds) > 0 && wantEndpoint && wantDeployment:
		where = append(where, "(deployment = '' OR "+in("deployment", q.Deployments)+")")
	case len(q.Deployments) > 0 && wantDeployment:
		where = append(where, in("deployment", q.Deployments))
	case !wantDeployment:
		add("deployment = ''")
	case !wantEndpoint:
		add("deployment <> ''")
	}
	if q.Subject != "" {
		add("subject = ?", q.Subject)
	}
	if q.MinLevel != "" {
		add("level >= ?", levels[q.MinLevel])
	}
	if !q.Since.IsZero() {
		add("at >= ?", nanos(q.Since))
	}
	if !q.Until.IsZero() {
		add("at < ?", nanos(q.Until))
	}
	return strings.Join(where, " AND "), args
}

// Slots reads the meter's slots that began at or after an instant.
func (s *SQLite) Slots(ctx context.Context, since time.Time) ([]rollout.MeterSlot, error) {
	rows, err := s.read.QueryContext(ctx, "SELECT key, start, data FROM meter_slots WHERE start >= ? ORDER BY start, key", nanos(since))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []rollout.MeterSlot
	for rows.Next() {
		var slot rollout.MeterSlot
		var start int64
		if err := rows.Scan(&slot.Key, &start, &slot.Data); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		slot.Start = time.Unix(0, start)
		out = append(out, slot)
	}
	return out, rows.Err()
}

// Project reads the engine's project; ErrNotFound before the first start.
func (s *SQLite) Project(ctx context.Context) (rollout.Project, error) {
	return one[rollout.Project](ctx, s, "SELECT value FROM meta WHERE key = 'project'")
}

// SaveProject keeps the engine's project.
func (s *SQLite) SaveProject(ctx context.Context, p rollout.Project) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the project: %w", err)
	}
	return s.inTx(ctx, func(w *writer) {
		w.exec("INSERT INTO meta (key, value) VALUES ('project', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", string(text))
	})
}
