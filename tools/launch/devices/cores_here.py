"""Prints the cores of a rank on a host that the plan did not see, such as ``0,1,4,5``; rank_entry.sh calls it there.

Arguments: core or numa, the device target, the rank's number on this host, the number of ranks here, their devices.
"""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

from tools.launch.devices import core_shares, device_locks


def main(mode: str, target: str, local_rank: int, ranks: int, *devices: int) -> int:
    try:
        others = [holder for holder in device_locks.asked() if holder.job != os.environ.get("LOG_DIR")]
        taken = {core for holder in others for core in holder.cores}
    except OSError:
        taken = set()
    here = list(devices[:ranks])
    shares = core_shares.of_this_host(mode, target, here, os.sched_getaffinity(0), taken)
    print(",".join(map(str, shares[local_rank])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
