#!/usr/bin/env python3
"""The launch plan's entry; scripts/lib/plan.sh calls it, nobody else does.

Kept to syntax that any Python reads, so that an old one is told so in words.
"""

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools import needs

REFUSED = 78
SCRIPT = [word[len("script=") :] for word in sys.argv if word.startswith("script=")][0]

needs.python(SCRIPT, REFUSED)
try:
    from tools import planner

    code = planner.main(sys.argv[1:])
    sys.stdout.flush()
except ImportError as error:
    remedy = "activate the environment that has MindSpore, or name its Python in PYTHON"
    needs.refuse("cannot plan a launch: " + str(error), remedy, SCRIPT, REFUSED)
except KeyboardInterrupt:
    code = 130  # the launcher got the Ctrl-C too, and says nothing more
os._exit(code)  # the interpreter would take its modules apart first: 3 ms
