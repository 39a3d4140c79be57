-- Number the rows of a table in its own order, and keep what the answer needs of them.
-- Relation: source. Lists: $kept (columns to hand on), $inputs (casts of the input columns).
SELECT
  ROW_NUMBER() OVER () AS row_id,
  $kept,
  $inputs
FROM source
