// Package store keeps the engine's records in SQLite: one file, WAL, every commit
// synced to disk, since the engine acts on what it has written. A record is its
// JSON beside the few columns that are searched; a write is one rollout.Change,
// all of it or nothing. Writes that come while another one is under way share a
// transaction, and so a sync.
package store
