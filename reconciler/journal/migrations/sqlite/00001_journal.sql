-- +goose Up
-- Who may write: the newest holder of the one row. A fence that was lower is stale for
-- ever; an empty id is nobody.
CREATE TABLE lease (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  fence   INTEGER NOT NULL,
  id      TEXT NOT NULL,
  host    TEXT NOT NULL,
  pid     INTEGER NOT NULL,
  since   INTEGER NOT NULL,
  renewed INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;
INSERT INTO lease (one, fence, id, host, pid, since, renewed, expires) VALUES (1, 0, '', '', 0, 0, 0, 0);

CREATE TABLE records (
  kind       TEXT NOT NULL,
  repository TEXT NOT NULL,
  stack      TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      BLOB NOT NULL,
  PRIMARY KEY (kind, repository, stack, name)
) STRICT;

-- An intent is open until it has a result.
CREATE TABLE intents (
  id         TEXT PRIMARY KEY,
  repository TEXT NOT NULL,
  stack      TEXT NOT NULL,
  address    TEXT NOT NULL,
  verb       TEXT NOT NULL,
  detail     BLOB NOT NULL,
  at         INTEGER NOT NULL,
  ended      INTEGER,
  result     TEXT,
  outcome    BLOB
) STRICT;
CREATE INDEX open_intents ON intents (at, id) WHERE ended IS NULL;
CREATE INDEX ended_intents ON intents (ended) WHERE ended IS NOT NULL;

CREATE TABLE entries (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  at         INTEGER NOT NULL,
  repository TEXT NOT NULL,
  stack      TEXT NOT NULL,
  endpoint   TEXT NOT NULL,
  commit_id  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  text       TEXT NOT NULL,
  detail     BLOB NOT NULL
) STRICT;
CREATE INDEX entries_by_age ON entries (at);
CREATE INDEX entries_by_stack ON entries (repository, stack, seq);
CREATE INDEX entries_by_endpoint ON entries (endpoint, seq);

-- +goose Down
DROP TABLE entries;
DROP TABLE intents;
DROP TABLE records;
DROP TABLE lease;
