-- An entry for every row and column, 0 where there was none.
-- Relations: inputs, columns, complete. Value: $zero.
SELECT
  complete.row_id AS row_id,
  columns.feature AS feature,
  COALESCE(inputs.value, $zero) AS value
FROM complete
CROSS JOIN columns
LEFT JOIN inputs ON inputs.row_id = complete.row_id AND inputs.feature = columns.feature
