"""Ranks that are forks of one process, which has imported what all of them need (--import_once)."""
