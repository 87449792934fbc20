"""Starts ranks as forks of one process, which has imported what all of them need (--import_once)."""
