"""The page of a run: one HTML file with what became of it, its curves, and what to look at."""
