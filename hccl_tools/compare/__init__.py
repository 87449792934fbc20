"""Compares two rank tables: what differs in meaning, presented to people or to programs."""
