-- One entry (row_id, feature, value) for each input of each row, NULLs included.
-- Relation: source. Lists: $features (0, 1, 2, ...), $inputs (the input columns, in that order).
SELECT
  row_id,
  UNNEST($features) AS feature,
  UNNEST($inputs) AS value
FROM source
