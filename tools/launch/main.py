#!/usr/bin/env python3
"""The launch plan's entry, which only scripts/lib/plan.sh calls.

Kept to syntax that any Python reads, so that an old one ends with a message and not with a SyntaxError.
"""

import os
import signal
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.common.project import ROOT
from hccl_tools.machine import interpreter

REFUSED = 78
SCRIPT, LAUNCHER = [
    [word[len(name) :] for word in sys.argv if word.startswith(name)][0] for name in ("script=", "job_pid=")
]


def heed_interrupt():  # type: () -> None
    """Obeys Ctrl-C if the launcher does: bash 4.2 and 5.3 start what they read from with SIGINT ignored."""
    try:
        with open("/proc/" + LAUNCHER + "/status") as file:
            ignored = [line.split()[1] for line in file if line.startswith("SigIgn:")][0]
    except OSError:
        return  # it has ended
    if not int(ignored, 16) >> (signal.SIGINT - 1) & 1:
        signal.signal(signal.SIGINT, signal.default_int_handler)


interpreter.python(SCRIPT, REFUSED)
try:
    heed_interrupt()
    from tools.launch import plan

    code = plan.main(SCRIPT, sys.argv[1:])
    sys.stdout.flush()
except ImportError as error:
    from hccl_tools.common.language import tr

    remedy = tr("activate the environment that has MindSpore, or name its Python in PYTHON")
    if error.name in interpreter.LOWEST:
        remedy += tr("; or {remedy}", remedy=interpreter.install(error.name))
    interpreter.refuse(tr("cannot plan a launch: {reason}", reason=error), remedy, SCRIPT, REFUSED)
except EOFError:  # Python before 3.14 keeps what it could write of a file of its cache, on a full disk say
    sys.stderr.write(SCRIPT + ": Python's cache of this project is damaged; delete the folders __pycache__ in " + ROOT)
    sys.stderr.write("\n")
    code = REFUSED
except BrokenPipeError:
    code = REFUSED  # the launcher has ended, and nobody reads the plan
except KeyboardInterrupt:
    code = 130  # the launcher got the Ctrl-C too, and prints nothing more
os._exit(code)  # the interpreter would take its modules apart first: 3 ms
