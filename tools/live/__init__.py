"""A running job, for tools/watch.py: its ranks, and which of them are slow, silent or gone."""
