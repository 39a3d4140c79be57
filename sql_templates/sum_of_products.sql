-- Products and sums over terms as window aggregates: the product runs over the factors of a
-- (row, component, term), the sum over the terms of a (row, component).
-- Relations: inputs, components. Value: $product, the window aggregate over the factors, such as
-- PRODUCT(inputs.value) OVER (PARTITION BY row_id, component, term).
SELECT row_id, component AS feature, value
FROM (
  SELECT
    row_id,
    component,
    term,
    SUM(CASE WHEN sign > 0 THEN product ELSE -product END) OVER (
      PARTITION BY row_id, component
    ) AS value
  FROM (
    SELECT
      inputs.row_id,
      components.component,
      components.term,
      components.factor,
      components.sign,
      $product AS product
    FROM inputs
    JOIN components ON components.hyperplane = inputs.feature
  ) AS factors
  WHERE factor = 0
) AS terms
WHERE term = 0
