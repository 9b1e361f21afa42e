-- +goose Up
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE endpoints (
  id      TEXT PRIMARY KEY,
  project TEXT NOT NULL,
  name    TEXT NOT NULL,
  created INTEGER NOT NULL,
  version INTEGER NOT NULL,
  body    TEXT NOT NULL,
  UNIQUE (project, name)
) STRICT;

-- An endpoint cannot go while a deployment is being made on it.
CREATE TABLE deployments (
  id       TEXT PRIMARY KEY,
  endpoint TEXT NOT NULL REFERENCES endpoints (id),
  name     TEXT NOT NULL,
  created  INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  body     TEXT NOT NULL,
  UNIQUE (endpoint, name)
) STRICT;

CREATE TABLE rollouts (
  id       TEXT PRIMARY KEY,
  endpoint TEXT NOT NULL REFERENCES endpoints (id),
  open     INTEGER NOT NULL,
  created  INTEGER NOT NULL,
  version  INTEGER NOT NULL,
  body     TEXT NOT NULL
) STRICT;
CREATE INDEX rollouts_by_endpoint ON rollouts (endpoint, created);
-- The slot of an endpoint: at most one rollout that is not over.
CREATE UNIQUE INDEX one_open_rollout ON rollouts (endpoint) WHERE open = 1;

CREATE TABLE events (
  place      INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint   TEXT NOT NULL,
  deployment TEXT NOT NULL,
  subject    TEXT NOT NULL,
  type       TEXT NOT NULL,
  level      INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  body       TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_endpoint ON events (endpoint, place);

CREATE TABLE keys (
  id      TEXT PRIMARY KEY,
  hash    TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  version INTEGER NOT NULL,
  body    TEXT NOT NULL
) STRICT;

CREATE TABLE answers (
  key     TEXT PRIMARY KEY,
  digest  TEXT NOT NULL,
  subject TEXT NOT NULL,
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX answers_by_age ON answers (at);

CREATE TABLE meter_slots (
  key   TEXT PRIMARY KEY,
  start INTEGER NOT NULL,
  data  BLOB NOT NULL
) STRICT;
CREATE INDEX meter_slots_by_start ON meter_slots (start);

-- +goose Down
DROP TABLE meter_slots;
DROP TABLE answers;
DROP TABLE keys;
DROP TABLE events;
DROP TABLE rollouts;
DROP TABLE deployments;
DROP TABLE endpoints;
DROP TABLE meta;
