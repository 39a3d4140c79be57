-- Treat missing values (NULL, NaN, infinite), then shift and scale.
-- Relations: inputs, columns. Values: $finite (a test of inputs.value), $value (inputs.value, or
-- that held between columns.low and columns.high), $missing (columns.fill, NULL, or an error).
SELECT
  inputs.row_id,
  inputs.feature,
  (CASE WHEN $finite THEN $value ELSE $missing END - columns.shift)
    * columns.scale AS value
FROM inputs
JOIN columns ON columns.feature = inputs.feature
