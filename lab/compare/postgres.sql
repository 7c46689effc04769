-- $1 is the request id, $2 the entity. A statement sees the requests that were
-- committed before it began; of two at the same time the second fails at the
-- primary key, with all that it did.
WITH known AS (
  SELECT granted FROM requests WHERE id = $1
), taken AS (
  UPDATE entities SET tokens = tokens - 1
  WHERE name = $2 AND tokens >= 1 AND NOT EXISTS (SELECT 1 FROM known)
  RETURNING 1
), told AS (
  INSERT INTO requests (id, granted)
  SELECT $1, EXISTS (SELECT 1 FROM taken) WHERE NOT EXISTS (SELECT 1 FROM known)
  RETURNING granted
)
SELECT granted FROM told UNION ALL SELECT granted FROM known
