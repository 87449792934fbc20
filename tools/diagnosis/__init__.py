"""Explains why a run failed, and where its ranks are."""
