"""The hosts of a job, compared before it starts: only what differs or blocks is printed."""
