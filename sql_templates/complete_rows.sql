-- The rows that have no missing value.
-- Relations: source, inputs.
SELECT source.row_id
FROM source
LEFT JOIN (SELECT DISTINCT row_id FROM inputs WHERE value IS NULL) AS incomplete
  ON incomplete.row_id = source.row_id
WHERE incomplete.row_id IS NULL
