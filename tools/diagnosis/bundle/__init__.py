"""Packs the logs of a job into one file for another person, limited in size and without secrets."""
