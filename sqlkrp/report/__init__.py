"""A page about a map or a model on a table: what is found in aggregates, and how it is shown."""
