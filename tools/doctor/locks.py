"""Prints the jobs of this launcher that hold devices or cores, as JSON.

The form is [[job, process id, [device, ...], [core, ...]], ...].

This is a separate program, so that doctor.sh can stop it: the file system with the locks may hang.
"""

import json
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from tools.launch.devices import device_locks, lock_folders

if __name__ == "__main__":
    try:
        jobs = [[holder.job, holder.pid, holder.devices, holder.cores] for holder in device_locks.held()]
        print(json.dumps(jobs))
    except OSError as error:
        sys.exit(f"{error.filename or lock_folders.bases()}: {error.strerror}")
