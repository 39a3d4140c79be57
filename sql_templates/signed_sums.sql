-- The projection <x, r>: for each row and hyperplane, add the inputs with sign +1 and subtract
-- those with sign -1. The second half of the union makes every row have every hyperplane of the
-- pool, also where no entry meets it (an all-zero hyperplane, an all-zero row).
-- Relations: inputs, hyperplanes, pool, complete. Value: $zero.
SELECT
  row_id,
  hyperplane AS feature,
  SUM(CASE WHEN sign > 0 THEN value ELSE -value END) AS value
FROM (
  SELECT inputs.row_id, hyperplanes.hyperplane, hyperplanes.sign, inputs.value
  FROM inputs
  JOIN hyperplanes ON hyperplanes.feature = inputs.feature
  UNION ALL
  SELECT complete.row_id, pool.hyperplane, 1 AS sign, $zero AS value
  FROM complete
  CROSS JOIN pool
) AS signed_values
GROUP BY row_id, hyperplane
