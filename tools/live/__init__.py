"""A job while it runs, for tools/watch.py: its ranks, and which of them are slow, silent or gone."""
