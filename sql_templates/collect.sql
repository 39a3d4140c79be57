-- The outputs of a row side by side, behind what was kept of it, in the order of the source.
-- Relations: source, collected. Lists: $kept, $outputs.
SELECT
  $kept,
  $outputs
FROM source
LEFT JOIN collected ON collected.row_id = source.row_id
ORDER BY source.row_id ASC
