-- The one multiplication by all delayed constants.
-- Relation: inputs. Value: $constant.
SELECT row_id, feature, value * $constant AS value
FROM inputs
