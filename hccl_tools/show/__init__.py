"""Shows a rank table to people, as a table on the terminal or as an SVG."""
