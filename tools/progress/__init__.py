"""What a job says of its progress: numbers in the logs of its ranks, whatever trains."""
