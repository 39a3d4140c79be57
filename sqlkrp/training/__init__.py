"""From a table to a judged model: rows that stream, maps beside each other, and what folds say."""
