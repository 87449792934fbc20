"""The clocks of the hosts: a log's time of change is by the clock of the host that writes it, or of its file system."""

from __future__ import annotations

_AHEAD = 10.0  # seconds: less does no harm
_LATE = 70.0  # a change may be seen so late: NFS keeps what it knows of a file for up to 60 s


class Clocks:
    """How far the clocks of the hosts are ahead of ours, as far as it was seen."""

    def __init__(self) -> None:
        self.wrong: dict[str, float] = {}  # {host: seconds that its clock is ahead}, negative if it is behind

    def take(self, host: str, written: float, before: float, now: float) -> None:
        """A log of the host has changed between two moments of ours; written: when, by the other clock."""
        if before - _LATE <= written <= now + _AHEAD:
            self.wrong.pop(host, None)
        else:
            self.wrong[host] = written - now
