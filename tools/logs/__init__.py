"""Reads logs: those of ranks, of CANN, of hosts."""
