package journal

import (
	"context"
	"fmt"
	"time"
)

func (d *database) Commit(ctx context.Context, f Fence, b Batch) error {
	b, err := b.Admit()
	if err != nil {
		return err
	}
	return d.fenced(ctx, f, func(w *writer) {
		for _, k := range b.Delete {
			w.exec("DELETE FROM records WHERE kind = ? AND repository = ? AND stack = ? AND name = ?", k.Kind, k.Repository, k.Stack, k.Name)
		}
		for _, r := range b.Put {
			w.put(r)
		}
		for _, i := range b.Begin {
			w.begin(i)
		}
		for _, o := range b.End {
			w.end(o)
		}
		for _, e := range b.Entries {
			w.exec("INSERT INTO entries (at, repository, stack, endpoint, commit_id, kind, text, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
				stamp(e.At), e.Repository, e.Stack, e.Endpoint, e.Commit, e.Kind, e.Text, e.Detail)
		}
	})
}

func (w *writer) put(r Record) {
	w.exec("INSERT INTO records (kind, repository, stack, name, value) VALUES (?, ?, ?, ?, ?) "+
		"ON CONFLICT (kind, repository, stack, name) DO UPDATE SET value = excluded.value",
		r.Key.Kind, r.Key.Repository, r.Key.Stack, r.Key.Name, r.Value)
}

// begin writes an intent that is open, whatever was there under its id.
func (w *writer) begin(i Intent) {
	w.exec("INSERT INTO intents (id, repository, stack, address, verb, detail, at) VALUES (?, ?, ?, ?, ?, ?, ?) "+
		"ON CONFLICT (id) DO UPDATE SET repository = excluded.repository, stack = excluded.stack, address = excluded.address, "+
		"verb = excluded.verb, detail = excluded.detail, at = excluded.at, ended = NULL, result = NULL, outcome = NULL",
		i.ID, i.Repository, i.Stack, i.Address, i.Verb, i.Detail, stamp(i.At))
}

func (w *writer) end(o Outcome) {
	n := w.exec("UPDATE intents SET ended = ?, result = ?, outcome = ? WHERE id = ?", stamp(o.At), o.Result, o.Detail, o.Intent)
	if w.err == nil && n == 0 {
		w.err = &Bad{Why: fmt.Sprintf("an outcome for the intent %q, which was never begun", o.Intent)}
	}
}

func (d *database) Prune(ctx context.Context, f Fence, before time.Time, most int) (int, error) {
	if most <= 0 {
		return 0, nil
	}
	gone := 0
	err := d.fenced(ctx, f, func(w *writer) {
		gone = int(w.exec("DELETE FROM entries WHERE seq IN (SELECT seq FROM entries WHERE at < ? ORDER BY at, seq LIMIT ?)", stamp(before), most))
		if rest := most - gone; rest > 0 {
			gone += int(w.exec("DELETE FROM intents WHERE id IN (SELECT id FROM intents WHERE ended < ? ORDER BY ended, id LIMIT ?)", stamp(before), rest))
		}
	})
	if err != nil {
		return 0, err
	}
	return gone, nil
}
