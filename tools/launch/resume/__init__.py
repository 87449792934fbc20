"""Finds the checkpoints, and the run, from which a launch continues."""
