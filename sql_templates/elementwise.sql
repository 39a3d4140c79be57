-- A function of each value. Relation: inputs. Value: $result, the function of inputs.value.
SELECT
  inputs.row_id,
  inputs.feature,
  $result AS value
FROM inputs
