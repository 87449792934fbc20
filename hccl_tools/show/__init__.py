"""A rank table for the eye: as a table on the terminal or as an SVG."""
