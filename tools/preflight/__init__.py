"""Compares the hosts of a job before it starts, and prints only what differs or blocks."""
