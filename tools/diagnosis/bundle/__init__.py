"""Packs the logs of a job into one file for somebody else, cut to size and without secrets."""
