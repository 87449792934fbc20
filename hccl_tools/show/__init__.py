"""Shows a rank table to a person: as a table on the terminal or as an SVG."""
