package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// page is how many rows are read at once. No connection is held while they are handed
// out, so that who reads may write meanwhile.
const page = 256

func (d *database) Get(ctx context.Context, k Key) ([]byte, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	var value []byte
	err := d.read.QueryRowContext(ctx, d.words("SELECT value FROM records WHERE kind = ? AND repository = ? AND stack = ? AND name = ?"), k.Kind, k.Repository, k.Stack, k.Name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read a record: %w", d.translate(err))
	}
	return own(value), nil
}

// conditions are the parts of a WHERE that all hold.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts, c.args = append(c.parts, part), append(c.args, args...)
}

// equal asks for a column's value; an empty one asks for nothing.
func (c *conditions) equal(column, value string) {
	if value != "" {
		c.add(column+" = ?", value)
	}
}

func (c *conditions) where() string {
	if len(c.parts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.parts, " AND ")
}

// rows reads one page. Empty bytes are what own makes them, not the driver's nil.
func rows[T any](ctx context.Context, d *database, query string, args []any, scan func(scanner) (T, error)) (out []T, err error) {
	found, err := d.read.QueryContext(ctx, d.words(query), args...)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", d.translate(err))
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		row, err := scan(found)
		if err != nil {
			return nil, fmt.Errorf("read the journal: %w", d.translate(err))
		}
		out = append(out, row)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read the journal: %w", d.translate(err))
	}
	return out, nil
}

func (d *database) List(ctx context.Context, pattern Key) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var last *Key
		for {
			found, err := d.listAfter(ctx, pattern, last)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range found {
				if !yield(r, nil) {
					return
				}
			}
			if len(found) < page {
				return
			}
			last = &found[page-1].Key
		}
	}
}

func (d *database) listAfter(ctx context.Context, pattern Key, last *Key) ([]Record, error) {
	var c conditions
	c.equal("kind", pattern.Kind)
	c.equal("repository", pattern.Repository)
	c.equal("stack", pattern.Stack)
	c.equal("name", pattern.Name)
	if last != nil {
		c.add("(kind, repository, stack, name) > (?, ?, ?, ?)", last.Kind, last.Repository, last.Stack, last.Name)
	}
	return rows(ctx, d, "SELECT kind, repository, stack, name, value FROM records"+c.where()+" ORDER BY kind, repository, stack, name LIMIT ?", append(c.args, page), func(row scanner) (r Record, err error) {
		err = row.Scan(&r.Key.Kind, &r.Key.Repository, &r.Key.Stack, &r.Key.Name, &r.Value)
		r.Value = own(r.Value)
		return r, err
	})
}

func (d *database) Open(ctx context.Context) ([]Intent, error) {
	return rows(ctx, d, "SELECT id, repository, stack, address, verb, detail, at FROM intents WHERE ended IS NULL ORDER BY at, id", nil, func(row scanner) (i Intent, err error) {
		var at int64
		err = row.Scan(&i.ID, &i.Repository, &i.Stack, &i.Address, &i.Verb, &i.Detail, &at)
		i.At, i.Detail = instant(at), own(i.Detail)
		return i, err
	})
}

func (d *database) History(ctx context.Context, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		given, before := 0, q.Before
		for {
			n := page
			if q.Most > 0 {
				n = min(n, q.Most-given)
			}
			found, err := d.historyBefore(ctx, q, before, n)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range found {
				if !yield(e, nil) {
					return
				}
			}
			given += len(found)
			if len(found) < n || given == q.Most {
				return
			}
			before = found[n-1].Seq
		}
	}
}

func (d *database) historyBefore(ctx context.Context, q Query, before int64, n int) ([]Entry, error) {
	var c conditions
	c.equal("repository", q.Repository)
	c.equal("stack", q.Stack)
	c.equal("endpoint", q.Endpoint)
	c.equal("kind", q.Kind)
	if before > 0 {
		c.add("seq < ?", before)
	}
	return rows(ctx, d, "SELECT seq, at, repository, stack, endpoint, commit_id, kind, text, detail FROM entries"+c.where()+" ORDER BY seq DESC LIMIT ?", append(c.args, n), func(row scanner) (e Entry, err error) {
		var at int64
		err = row.Scan(&e.Seq, &at, &e.Repository, &e.Stack, &e.Endpoint, &e.Commit, &e.Kind, &e.Text, &e.Detail)
		e.At, e.Detail = instant(at), own(e.Detail)
		return e, err
	})
}
