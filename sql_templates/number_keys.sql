-- Number the rows of a table of keys, for input that comes as (row, feature, value).
-- Relation: keys. Lists: $key, $kept.
SELECT
  ROW_NUMBER() OVER () AS row_id,
  $key AS row_key,
  $kept
FROM keys
