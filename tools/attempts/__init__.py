"""Coordinates the attempts of a job whose hosts have a launcher each, by one process next to each launcher."""
