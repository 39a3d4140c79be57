-- Number the rows of (row, feature, value) input where no table of keys is given: a row is a key that
-- has at least one entry.
-- Relation: entries. Value: $key.
SELECT
  ROW_NUMBER() OVER (ORDER BY row_key ASC) AS row_id,
  row_key
FROM (SELECT DISTINCT $key AS row_key FROM entries) AS all_keys
WHERE row_key IS NOT NULL
