"""The page of a run: one HTML file with its outcome, its curves, and what to look at."""
