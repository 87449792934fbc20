#!/usr/bin/env python3
"""Entry point that users type; commands/validate.py implements the command."""

import gc
import os
import sys

# Run as a file, its own folder comes first on the import path and would hide the package of the same name.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/hccl_tools/validate_hccl.py\n")
    sys.exit(2)

interpreter.check()

from hccl_tools.commands import validate

if __name__ == "__main__":
    gc.disable()  # a large table is a million objects, none of them garbage; the size of a file has a limit
    sys.exit(validate.main())
