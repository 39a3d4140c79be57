-- The inputs of a row side by side, behind what was kept of it: what the wide form goes on from.
-- A row that was left out of them, for a missing value, is not complete.
-- Relations: source, collected. Lists: $kept, $inputs. Name: $place, which no output has.
SELECT
  source.row_id AS $place,
  $kept,
  CASE WHEN collected.row_id IS NULL THEN 0 ELSE 1 END AS complete,
  $inputs
FROM source
LEFT JOIN collected ON collected.row_id = source.row_id
