-- +goose Up
-- Who may write: the newest holder of the one row. A fence that was lower is stale for
-- ever; an empty id is nobody.
CREATE TABLE lease (
  one     BIGINT PRIMARY KEY CHECK (one = 1),
  fence   BIGINT NOT NULL,
  id      TEXT COLLATE "C" NOT NULL,
  host    TEXT COLLATE "C" NOT NULL,
  pid     BIGINT NOT NULL,
  since   BIGINT NOT NULL,
  renewed BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
INSERT INTO lease (one, fence, id, host, pid, since, renewed, expires) VALUES (1, 0, '', '', 0, 0, 0, 0);

CREATE TABLE records (
  kind       TEXT COLLATE "C" NOT NULL,
  repository TEXT COLLATE "C" NOT NULL,
  stack      TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  value      BYTEA NOT NULL,
  PRIMARY KEY (kind, repository, stack, name)
);

-- An intent is open until it has a result.
CREATE TABLE intents (
  id         TEXT COLLATE "C" PRIMARY KEY,
  repository TEXT COLLATE "C" NOT NULL,
  stack      TEXT COLLATE "C" NOT NULL,
  address    TEXT COLLATE "C" NOT NULL,
  verb       TEXT COLLATE "C" NOT NULL,
  detail     BYTEA NOT NULL,
  at         BIGINT NOT NULL,
  ended      BIGINT,
  result     TEXT COLLATE "C",
  outcome    BYTEA
);
CREATE INDEX open_intents ON intents (at, id) WHERE ended IS NULL;
CREATE INDEX ended_intents ON intents (ended) WHERE ended IS NOT NULL;

CREATE TABLE entries (
  seq        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at         BIGINT NOT NULL,
  repository TEXT COLLATE "C" NOT NULL,
  stack      TEXT COLLATE "C" NOT NULL,
  endpoint   TEXT COLLATE "C" NOT NULL,
  commit_id  TEXT COLLATE "C" NOT NULL,
  kind       TEXT COLLATE "C" NOT NULL,
  text       TEXT COLLATE "C" NOT NULL,
  detail     BYTEA NOT NULL
);
CREATE INDEX entries_by_age ON entries (at);
CREATE INDEX entries_by_stack ON entries (repository, stack, seq);
CREATE INDEX entries_by_endpoint ON entries (endpoint, seq);

-- +goose Down
DROP TABLE entries;
DROP TABLE intents;
DROP TABLE records;
DROP TABLE lease;
