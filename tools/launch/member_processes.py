"""Which processes are of a job: each has LAUNCH_JOB in its environment, and RANK_ID if it is of a rank."""

from __future__ import annotations

_MOST = 256 << 10  # bytes of an environment


def rank_of(pid: str, mark: bytes, proc: str = "/proc") -> int | None:
    """The rank of the process, if `mark` is in its environment; None also for one that is gone, or another user's.

    mark: b"LAUNCH_JOB=..."; proc: where the kernel shows processes.
    """
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            variables = file.read(_MOST).split(b"\0")
    except OSError:
        return None
    if mark not in variables:
        return None
    rank = next((variable[8:] for variable in variables if variable.startswith(b"RANK_ID=")), b"")
    return int(rank) if rank.isdigit() and len(rank) < 10 else None
