"""A rank table as data: its text, formats, columns, and places in its text."""
