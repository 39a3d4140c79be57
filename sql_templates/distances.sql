-- The squared distance of each row to each point. Where a row has no entry, its value is 0.
-- Relations: inputs, points, complete. Value: $zero.
SELECT
  row_id,
  point AS feature,
  SUM((value - coordinate) * (value - coordinate)) AS value
FROM (
  SELECT
    complete.row_id AS row_id,
    points.point AS point,
    points.coordinate AS coordinate,
    COALESCE(inputs.value, $zero) AS value
  FROM complete
  CROSS JOIN points
  LEFT JOIN inputs ON inputs.row_id = complete.row_id AND inputs.feature = points.feature
) AS coordinates
GROUP BY row_id, point
