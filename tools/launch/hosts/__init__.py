"""Launches over several hosts: their servers and addresses, are they ready, and a restart without one of them."""
