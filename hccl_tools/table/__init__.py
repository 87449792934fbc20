"""A rank table as data: its text, formats and columns, and positions in its text."""
