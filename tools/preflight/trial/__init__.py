"""Runs a short real job on the hosts of a check: the times of each host, and which of them fail or are slow."""
