"""Checks the pods of a job, which have no ssh: they connect to one of them, which compares their facts."""
