#!/usr/bin/env python3
"""The launch plan's entry; scripts/lib/plan.sh calls it, nobody else does.

Kept to syntax that any Python reads, so that an old one is told so in words.
"""

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

REFUSED = 78


def refuse(reason):
    """One line about this interpreter, and what to do."""
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    venv = os.path.join(root, ".venv", "bin", "activate")
    hint = "activate the environment that has MindSpore, or name its Python in PYTHON"
    if os.path.exists(venv):
        hint = "activate this project's: source " + venv
    name = [word[len("script=") :] for word in sys.argv if word.startswith("script=")]
    sys.stderr.write("%s: %s %s; %s\n" % (name[0], sys.executable, reason, hint))
    sys.exit(REFUSED)


if sys.version_info < (3, 9):
    refuse("is Python %d.%d; 3.9 or later is needed" % sys.version_info[:2])
try:
    from tools import planner

    code = planner.main(sys.argv[1:])
    sys.stdout.flush()
except ImportError as error:
    refuse("cannot plan a launch: " + str(error))
except KeyboardInterrupt:
    code = 130  # the launcher got the Ctrl-C too, and says nothing more
os._exit(code)  # the interpreter would take its modules apart first: 3 ms
