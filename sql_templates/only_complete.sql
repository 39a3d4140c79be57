-- Leave out the entries of rows that have a missing value; their features will be NULL.
-- Relations: inputs, complete.
SELECT inputs.row_id, inputs.feature, inputs.value
FROM inputs
JOIN complete ON complete.row_id = inputs.row_id
