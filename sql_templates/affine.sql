-- Each value is one input times a factor plus a constant. Relations: inputs, affine.
SELECT
  inputs.row_id,
  affine.output AS feature,
  inputs.value * affine.factor + affine.constant AS value
FROM inputs
JOIN affine ON affine.place = inputs.feature
