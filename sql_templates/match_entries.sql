-- Sparse input: find the row and the feature of each (row, feature, value) that the map knows.
-- Relations: entries, source, columns. Lists: $key, $name, $value.
SELECT
  source.row_id,
  columns.feature,
  $value AS value
FROM entries
JOIN columns ON columns.name = $name
JOIN source ON source.row_key = $key
