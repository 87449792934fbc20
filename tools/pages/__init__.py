"""Makes the pages of docs/ that are generated."""
