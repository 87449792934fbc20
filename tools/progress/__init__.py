"""Determines the progress of a job from numbers in the logs of its ranks, for any trainer."""
