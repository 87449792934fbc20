#!/usr/bin/env python3
"""Entry point that users type; commands/build.py implements the command."""

import os
import sys

# Run as a file, its own folder comes first on the import path and would hide the package of the same name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/hccl_tools/hccl_tools.py\n")
    sys.exit(2)

interpreter.check()

from hccl_tools.commands import build

if __name__ == "__main__":
    sys.exit(build.main())
