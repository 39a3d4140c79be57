-- Sparse input under names of our own, before it is joined: the user's names may be those of what
-- it is joined to. Relation: entries. Values: $key, $name, $value.
SELECT
  $key AS row_key,
  $name AS name,
  $value AS value
FROM entries
