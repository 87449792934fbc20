"""Finds the processes of a job: each has LAUNCH_JOB in its environment, and RANK_ID if it belongs to a rank."""

from __future__ import annotations

import os

_MOST = 256 << 10  # bytes of an environment


def rank_of(pid: str | int, mark: bytes, proc: str = "/proc") -> int | None:
    """The rank of the process, if it is a number; see `rank_text`."""
    rank = rank_text(pid, mark, proc) or ""
    return int(rank) if rank.isascii() and rank.isdigit() and len(rank) < 10 else None


def rank_text(pid: str | int, mark: bytes, proc: str = "/proc") -> str | None:
    """The RANK_ID of the process, if `mark` is in its environment; None also for one that is gone, or another user's.

    mark: b"LAUNCH_JOB=...", empty: of any job; proc: where the kernel shows processes.
    """
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            variables = file.read(_MOST).split(b"\0")
    except OSError:
        return None
    if mark and mark not in variables:
        return None
    return next((os.fsdecode(each[8:]) for each in variables if each.startswith(b"RANK_ID=")), None)
