"""How good features are: how far distances and kernels are off on rows of a table."""
