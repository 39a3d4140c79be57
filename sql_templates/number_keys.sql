-- Number the rows of a table of keys, for input that comes as (row, feature, value).
-- Relation: key_table. Values: $numbering (a window function), $key. List: $kept.
SELECT
  $numbering AS row_id,
  $key AS row_key,
  $kept
FROM key_table
