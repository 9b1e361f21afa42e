package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// OpenMemory makes a store that lives in memory and ends with Close: the same schema,
// statements and transactions as one in a file, for rehearsals and tests. Reads and
// writes share one connection, since every connection would be a store of its own.
func OpenMemory(ctx context.Context) (*SQLite, error) {
	s, err := openOn(ctx, "file::memory:?_pragma=foreign_keys(1)&_txlock=immediate", oneConnection)
	if err != nil {
		return nil, err
	}
	if err := s.lease(ctx, "the memory's maker"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Clear takes every record away and leaves the schema, so that a store in memory can
// be used again, by whoever clears it. It refuses one in a file.
func (s *SQLite) Clear(ctx context.Context) error {
	if s.read != s.write {
		return fmt.Errorf("clear: this store is a file and keeps what it has")
	}
	if err := s.lease(ctx, "the memory's maker"); err != nil {
		return err
	}
	return s.inTx(ctx, func(w *writer) {
		for _, table := range strings.Fields("answers meter_slots events rollouts deployments endpoints keys meta sqlite_sequence") {
			w.exec("DELETE FROM " + table)
		}
	})
}
