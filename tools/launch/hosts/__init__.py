"""Launches over several hosts: their servers and addresses, their readiness, and a restart without one of them."""
