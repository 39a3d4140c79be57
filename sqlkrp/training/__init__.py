"""Training where the data streams: what is summed over batches of features, and solved from it."""
