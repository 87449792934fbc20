"""Finds the cores of a rank on a host that the plan did not see; the rank's agent calls this there."""

from __future__ import annotations

import os

from tools.launch.devices import core_shares, device_locks


def cores(mode: str, target: str, local_rank: int, ranks: int, devices: list[int]) -> list[int]:
    """The cores of rank number `local_rank` of the `ranks` on this host; empty if none are found for it.

    mode: core or numa; target: the device target.
    """
    try:
        others = [holder for holder in device_locks.asked() if holder.job != os.environ.get("LOG_DIR")]
        taken = {core for holder in others for core in holder.cores}
    except OSError:
        taken = set()
    here = devices[:ranks]
    shares = core_shares.of_this_host(mode, target, here, os.sched_getaffinity(0), taken)
    return sorted(shares[local_rank])
