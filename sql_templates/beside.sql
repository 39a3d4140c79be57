-- Values beside others: those of one list of stages, and behind them those of another.
-- Relations: inputs, others. Value: $place, the place of the first of the others.
SELECT inputs.row_id, inputs.feature, inputs.value
FROM inputs
UNION ALL
SELECT others.row_id, others.feature + $place AS feature, others.value
FROM others
