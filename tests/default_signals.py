#!/usr/bin/env python3
"""Becomes a command for which no signal is ignored: python tests/default_signals.py COMMAND...

What starts `make test` with & or nohup leaves it SIGINT, SIGQUIT or SIGHUP ignored. A shell can never take
that back, and the launchers that the tests start would rightly ignore these signals.
"""

import os
import signal
import sys

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
