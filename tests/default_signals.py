#!/usr/bin/env python3
"""Becomes a command for which no signal is ignored: python tests/default_signals.py COMMAND...

What starts `make test` with & or nohup leaves it SIGINT, SIGQUIT or SIGHUP ignored. A shell can never take
that back, and the launchers that the tests start would rightly ignore these signals.  Python itself ignores
SIGPIPE and SIGXFSZ, and so do programs that it becomes: the `bats` of the package index, for one.
"""

import os
import signal
import sys

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
