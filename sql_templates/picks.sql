-- Each value is one input times a weight plus a constant. Relations: inputs, picks.
SELECT
  inputs.row_id,
  picks.output AS feature,
  inputs.value * picks.weight + picks.constant AS value
FROM inputs
JOIN picks ON picks.feature = inputs.feature
