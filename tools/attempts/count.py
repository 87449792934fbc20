"""Decides which restarts count: those after which the job came no further.  One launcher or many use it.

A restart that brings the job further, by a step or by a checkpoint, resets the count to 0.  So a job may have many
restarts while they help, up to a total limit, but only few that do not help.
"""

from __future__ import annotations

DEFAULT_LIMIT = 100  # restarts in all; --restart_limit
BIGGEST_STEP = 10**9  # what a message between hosts bears


class Count:
    """restarts: --max_restarts, the most restarts in a row without progress; limit: --restart_limit, all restarts.

    vain: the restarts in a row without progress; number: of the attempt that runs, 0 is the first.
    """

    def __init__(self, restarts: int, limit: int) -> None:
        self.restarts, self.limit = restarts, limit
        self.vain = self.number = 0

    def failed(self, further: bool) -> bool:
        """Notes the failure of an attempt; further: it brought the job further.  Returns whether its restart counts."""
        self.vain = self.vain + 1 if self.number and not further else 0
        return self.vain > 0

    @property
    def at_limit(self) -> bool:
        """Whether the total number of restarts has reached its limit."""
        return self.number >= self.limit

    @property
    def may_restart(self) -> bool:
        """Whether there is another attempt."""
        return self.vain < self.restarts and not self.at_limit

    def again(self) -> None:
        """Notes that the next attempt begins."""
        self.number += 1


def limit_of(restarts: int, given: int | None) -> int:
    """--restart_limit, or its default."""
    return max(DEFAULT_LIMIT, restarts) if given is None else given
