"""A short real job on the hosts of a check: what each took, and which of them fail or are slow."""
