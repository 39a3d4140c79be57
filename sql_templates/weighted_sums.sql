-- The projection on hyperplanes of weights (the Gaussian fallback).
-- Relations: inputs, hyperplanes, pool, complete. Value: $zero.
SELECT
  row_id,
  hyperplane AS feature,
  SUM(value) AS value
FROM (
  SELECT inputs.row_id, hyperplanes.hyperplane, inputs.value * hyperplanes.weight AS value
  FROM inputs
  JOIN hyperplanes ON hyperplanes.feature = inputs.feature
  UNION ALL
  SELECT complete.row_id, pool.hyperplane, $zero AS value
  FROM complete
  CROSS JOIN pool
) AS weighted
GROUP BY row_id, hyperplane
