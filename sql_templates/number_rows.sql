-- Number the rows of a table, and keep what the answer needs of them.
-- Relation: source. Value: $numbering (a window function). Lists: $kept (columns to hand on),
-- $inputs (casts of the input columns).
SELECT
  $numbering AS row_id,
  $kept,
  $inputs
FROM source
