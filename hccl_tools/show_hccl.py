#!/usr/bin/env python3
"""What users type; the command itself is commands/show.py."""

import os
import sys

# Run as a file, its own folder comes first on the import path and would hide the package of the same name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools.machine import interpreter

interpreter.check()

from hccl_tools.commands import show

if __name__ == "__main__":
    sys.exit(show.main())
