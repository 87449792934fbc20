#!/usr/bin/env python3
"""Runs MindSpore's scheduler: the process with which the ranks of a dynamic cluster register.

The launcher starts one next to the ranks (MS_ROLE=MS_SCHED).  It needs neither a trainer nor a model.  It only needs
its address (MS_SCHED_HOST, MS_SCHED_PORT) and the number of workers to expect (MS_WORKER_NUM).  It ends when all of
them have left.

For MindSpore a rank has left when it has signed off.  A rank that ends in a hurry (see train.py's leave) or crashes at
its end does not sign off.  Half a minute later the scheduler counts it as lost, and fails.  So here all ranks have left
if each has been connected once, and none is connected now.
"""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a file: see docs/architecture.md
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))

import ctypes
import importlib.util
import select
import signal
import time
import types

from tools.launch.engines.joining import Joining

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 3  # without a connection
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>: the signal that a process gets when its parent has ended
WHOLE = "--whole"  # the word for a process that imports all of MindSpore


def main() -> int:
    """MindSpore's part in a child: it holds Python's lock all the time.  Ends as that does, or with 0 when all left."""
    alive, childs = os.pipe()  # ends with the child
    child = os.fork()
    if child == 0:
        os.close(alive)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.set_inheritable(childs, True)
        serve()
        return 0
    os.close(childs)
    watch(alive)
    if not ended(alive, 0):
        os.kill(child, signal.SIGKILL)
        return 0
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:  # which needs no default, and takes none
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def serve() -> None:
    """Returns when all ranks have signed off, or becomes a process that does so with all of MindSpore."""
    core = mindspores_core()
    if core is None:
        os.execv(sys.executable, [sys.executable, os.path.realpath(__file__), WHOLE])
    core.init_cluster()
    core.finalize_hccl()


def mindspores_core() -> Any | None:
    """The extension module that has MindSpore's scheduler, for processors; None if this MindSpore has it elsewhere.

    It is imported without its package: `import mindspore` takes five times as long (2.6 s of processor time), at the
    moment when all ranks do the same, and memory that no scheduler uses.  These are the calls of `mindspore.set_device`
    and `mindspore.communication.init` of MindSpore 2.10.
    """
    spec = importlib.util.find_spec("mindspore")
    if spec is None or spec.submodule_search_locations is None:
        return None
    package = types.ModuleType("mindspore")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["mindspore"] = package
    try:
        from mindspore import _c_expression as core

        core.MSContext.get_instance().set_device_target_inner("CPU")
        core.DeviceManagerConf.get_instance().set_device("CPU", 0, True)
        return core if core.init_cluster and core.finalize_hccl else None
    except (ImportError, AttributeError, TypeError):
        return None


def serve_with_all() -> None:
    """The same as serve, with MindSpore's public functions."""
    import mindspore
    from mindspore import communication

    mindspore.set_device("CPU")
    communication.init()
    communication.release()


def watch(alive: int) -> None:
    """Returns when the child has ended, or all ranks have been connected and none is any more."""
    port, ranks = int(os.environ["MS_SCHED_PORT"]), int(os.environ["MS_WORKER_NUM"])
    joining = Joining(port, ranks, os.environ.get("LAUNCH_JOB", ""))
    all_came, last_seen = False, time.monotonic()
    while not all_came or time.monotonic() < last_seen + SECONDS:
        if ended(alive, 0.5):
            return
        found, are_all = joining.look()
        if found:
            last_seen = time.monotonic()
        if are_all and not all_came:
            all_came = True
            print(f"mindspore_scheduler.py: all {ranks} ranks are connected", flush=True)
    print("mindspore_scheduler.py: all ranks have left", flush=True)


def ended(alive: int, seconds: float) -> bool:
    """Whether the other end of the pipe is closed, or will be within `seconds`."""
    return bool(select.select([alive], [], [], seconds)[0])


if __name__ == "__main__":
    if sys.argv[1:] == [WHOLE]:
        serve_with_all()
    else:
        sys.exit(main())
