"""Checks whether the ranks of a job train one model together: the signs against it, each with its evidence."""
