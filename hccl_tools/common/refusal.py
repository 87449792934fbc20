"""The exception that ends a command with a message; all refusals in this project derive from it."""

from __future__ import annotations

from hccl_tools.common.language import tr

BAD, USAGE, REFUSED = 1, 2, 78  # exit codes: a bad table; the command line or a file; a launch that cannot start


class Refusal(Exception):
    """The command cannot do what was asked.

    status: the exit code.
    lines:  what the user reads: one line per problem with its place, what is wrong, and what to do.
    """

    def __init__(self, status: int, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = lines


class NotHere(Refusal):
    """This machine has none of the devices that a launch needs; the launcher reports what to type instead."""


def refused(message: str, **values: object) -> Refusal:
    """The Refusal of a launch that cannot start, with one line: the message as `tr` translates it."""
    return Refusal(REFUSED, tr(message, **values))


def misused(message: str, **values: object) -> Refusal:
    """The same for a command line or a file that is wrong."""
    return Refusal(USAGE, tr(message, **values))


def faulty(message: str, **values: object) -> Refusal:
    """The same for a table that is wrong, or that does not have what is needed."""
    return Refusal(BAD, tr(message, **values))
