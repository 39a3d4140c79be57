-- The outputs of a row side by side, behind what was kept of it, in the order of the source.
-- Relations: source, collected. Lists: $kept, $outputs. Name: $place, which no output has (some
-- engines would find two to order by).
SELECT
  $kept,
  $outputs
FROM (SELECT row_id AS $place, source.* FROM source) AS source
LEFT JOIN collected ON collected.row_id = source.row_id
ORDER BY $place ASC
