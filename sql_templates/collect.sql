-- The outputs of a row as one list, beside what was kept of it, in the order of the source.
-- Relations: source, inputs. Lists: $kept, $outputs.
SELECT
  $kept,
  $outputs
FROM source
LEFT JOIN (
  SELECT row_id, LIST(value ORDER BY feature ASC) AS items FROM inputs GROUP BY row_id
) AS collected ON collected.row_id = source.row_id
ORDER BY source.row_id ASC
