-- One entry (row_id, feature, value) for each input of each row, NULLs included.
-- Relation: source. Values, each as many rows: $features (0, 1, ...), $inputs (the input columns).
SELECT
  row_id,
  $features AS feature,
  $inputs AS value
FROM source
