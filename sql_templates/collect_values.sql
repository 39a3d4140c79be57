-- The values of a row brought together. Relation: inputs. List: $collected (aggregates of a row).
SELECT
  row_id,
  $collected
FROM inputs
GROUP BY row_id
