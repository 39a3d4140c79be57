-- Sums of inputs, as the projection <x, r>: for each row and hyperplane, add up the entries. The
-- second half of the union makes every row have every hyperplane of the pool, also where no entry
-- meets it (an all-zero hyperplane, an all-zero row).
-- Relations: inputs, hyperplanes, pool, complete. Values: $entry (inputs.value with the sign of
-- hyperplanes.sign, or times hyperplanes.weight), $constant (0, or pool.constant).
SELECT
  row_id,
  hyperplane AS feature,
  SUM(value) AS value
FROM (
  SELECT inputs.row_id, hyperplanes.hyperplane, $entry AS value
  FROM inputs
  JOIN hyperplanes ON hyperplanes.feature = inputs.feature
  UNION ALL
  SELECT complete.row_id, pool.hyperplane, $constant AS value
  FROM complete
  CROSS JOIN pool
) AS entry_values
GROUP BY row_id, hyperplane
