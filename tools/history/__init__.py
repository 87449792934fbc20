"""The runs in a folder of logs: what became of them, and which can go."""
