#!/usr/bin/env python3
"""Explains why a launch failed and what to do, from the logs of its ranks and the table of known failures.

tools/diagnosis/main.py implements the command.
"""

import os
import sys

# Run as a file, its own folder comes first on the import path; the packages are in the project's folder.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/diagnose.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.common.language import tr
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import one_line
from tools.diagnosis.main import main

if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # a failure's report must not contain a second failure
        reason = f"{type(error).__name__}: {one_line(error)}"
        text = tr("cannot explain this run: {reason}", reason=reason)
        print(f"{name_of('diagnose.py')}: {text}", file=sys.stderr)
        code = 1
    sys.exit(code)
