-- Divide each row by its length; a row of zeros stays as it is.
-- Relation: inputs.
SELECT
  inputs.row_id,
  inputs.feature,
  CASE WHEN lengths.length = 0 THEN inputs.value ELSE inputs.value / lengths.length END AS value
FROM inputs
JOIN (
  SELECT row_id, SQRT(SUM(value * value)) AS length FROM inputs GROUP BY row_id
) AS lengths ON lengths.row_id = inputs.row_id
