-- The values of one list of stages, and behind them those of another.
-- Relations: inputs, behind. Value: $place, the place of the first of those behind.
SELECT inputs.row_id, inputs.feature, inputs.value
FROM inputs
UNION ALL
SELECT behind.row_id, behind.feature + $place AS feature, behind.value
FROM behind
