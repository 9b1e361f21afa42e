-- +goose Up
-- Who may write: the newest holder of the one row. A token that was lower is stale for ever.
CREATE TABLE lease (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  token  INTEGER NOT NULL,
  holder TEXT NOT NULL
) STRICT;
INSERT INTO lease (one, token, holder) VALUES (1, 0, '');

-- +goose Down
DROP TABLE lease;
