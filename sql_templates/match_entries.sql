-- Sparse input: find the row and the feature of each (row, feature, value) that the map knows.
-- Relations: given, source, columns.
SELECT
  source.row_id AS row_id,
  columns.feature AS feature,
  given.value AS value
FROM given
JOIN columns ON columns.name = given.name
JOIN source ON source.row_key = given.row_key
