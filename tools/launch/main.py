#!/usr/bin/env python3
"""The entry point of the launcher; only scripts/lib/start.sh runs it.

  main.py script=$0 caller=... ignored=MASK DECLARATION... -- WORD...     see start.sh, and tools/launch/launcher.py

It uses only syntax that any Python reads.  So an old Python ends with a message and not with a SyntaxError.
"""

import os
import signal
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path[0] = ROOT  # the packages hccl_tools and tools of this project, whatever else has these names

from hccl_tools.machine import interpreter

REFUSED = 78


def declaration():  # type: () -> list[str]
    """The script's arguments, without the user's."""
    return sys.argv[1 : sys.argv.index("--")]


def script():  # type: () -> str
    """The name of the script that the user typed."""
    named = [word[5:] for word in declaration() if word.startswith("name=")]
    return (named or [os.path.basename(sys.argv[1][7:])])[0]


def heed_interrupt():  # type: () -> None
    """Obeys Ctrl-C from now on, unless the caller ignores it."""
    mask = int([word[8:] for word in declaration() if word.startswith("ignored=")][0] or "0", 16)
    if not mask >> (signal.SIGINT - 1) & 1:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main():  # type: () -> int
    """The exit code."""
    interpreter.python(script(), REFUSED)
    interpreter.of_user()
    try:
        heed_interrupt()
        from tools.launch import launcher

        return launcher.main(sys.argv[1:])
    except ImportError as error:
        from hccl_tools.common.language import tr

        remedy = tr("activate the environment that has MindSpore, or name its Python in PYTHON")
        if error.name in interpreter.LOWEST:
            remedy += tr("; or {remedy}", remedy=interpreter.install(error.name))
        interpreter.refuse(tr("cannot plan a launch: {reason}", reason=error), remedy, script(), REFUSED)
    except EOFError:  # Python before 3.14 keeps what it could write of a file of its cache, on a full disk say
        text = script() + ": Python's cache of this project is damaged; delete the folders __pycache__ in " + ROOT
        sys.stderr.write(interpreter.harmless(text) + "\n")
    except KeyboardInterrupt:
        return 130
    return REFUSED


if __name__ == "__main__":
    status = main()
    os._exit(status)  # the interpreter would take its modules apart first: 3 ms
