#!/usr/bin/env python3
"""Shows a job while it runs: how far it is, and which ranks are slow, silent or gone.

  python tools/watch.py                     the newest run in logs/
  python tools/watch.py logs/RUN            that run
  python tools/watch.py --once              the current state, as a table
  python tools/watch.py --json              the same for a program

On a terminal it is a live screen; its keys are on its last line.  Elsewhere it prints a line every 10 seconds.  It
only reads: the ranks' logs, launch.json and /proc.  configs/progress.yaml, and the file that LAUNCH_PROGRESS names,
define which lines have numbers.  It ends with the job, and with the job's exit code.
Exit: 0 the job ended well or somebody pressed q, 1 the launcher was killed, 2 usage or no such run.
"""

import argparse
import os
import sys
import time

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/watch.py\n")
    sys.exit(2)

interpreter.check("yaml", "rich")

from hccl_tools.commands import boundary
from hccl_tools.common import documents, option_table
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import seconds
from hccl_tools.common.words import one_line
from tools.live import loop, snapshot
from tools.live.job import RUNNING, Reader
from tools.live.watcher import Watcher

PROGRAM = "watch.py"


def main(argv: "list[str] | None" = None) -> int:
    options = parse(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def run(options: argparse.Namespace) -> int:
    watcher = Watcher(Reader(options.run))
    console = loop.console_for_stdout()
    if options.once or options.json:
        view = watcher.look(time.monotonic(), time.time())
        if options.json:
            print(documents.json_text(snapshot.of(view)))
        else:
            loop.show(view, console)
        return 0
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and options.every is None:
        view, enough = loop.Screen(watcher, console, terminal()).run()
        if enough:
            return 0
        loop.show(view, console)
    else:
        view = loop.follow(watcher, options.every or 10, print_line)
        if view.job.state != RUNNING:
            loop.show(view, console)
    code, text = loop.status(view)
    if text:
        boundary.say(PROGRAM, text)
    return code


def parse(argv: "list[str] | None") -> argparse.Namespace:
    parser = Parser(description=tr(__doc__))
    parser.add_argument("run", metavar="RUN", nargs="?", default="logs/latest", help=tr(option_table.RUN))
    parser.option("once")
    parser.json(note=tr("; what is known now, once"))
    parser.option("every")
    options = parser.parse_args(argv)
    if options.every is not None:
        every = seconds(options.every, 1)
        if every is None:
            text = tr(
                "--every {value}: expected a time of at least 1 s, such as 30, 90s or 1h30m",
                value=one_line(options.every),
            )
            parser.error(text)
        options.every = every
    return options


def terminal() -> "int | None":
    """The terminal that keys come from."""
    try:
        return 0 if os.isatty(0) else os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def print_line(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
