-- One more input, equal in all rows (for the coef0 of the kernel).
-- Relations: inputs, complete. Values: $feature, $constant.
SELECT row_id, feature, value FROM inputs
UNION ALL
SELECT row_id, $feature AS feature, $constant AS value FROM complete
