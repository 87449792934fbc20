"""A rank: its environment, and the program that starts it for an engine."""
