"""Whether the other hosts of a launch are ready, asked over ssh, all at the same time."""


def problems(asked, place):
    """A line a problem of a host; empty when all are ready."""
    return []
