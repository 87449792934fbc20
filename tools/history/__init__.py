"""The runs in a folder of logs: their outcomes, and which of them can be removed."""
