"""The live screen of the launcher's own job: --console table.

  python tools/live/beside.py CONTROL RUN MESSAGES UNREAD

tools/features/screen.py starts it.  CONTROL: the descriptor of a pipe that ends with the attempt.  RUN: the folder of
the run.  MESSAGES: the file that has the launcher's messages meanwhile.  They go to stderr after the screen: at the
end, or after the key q.  UNREAD is a descriptor of that file, whose position the launcher shares.  Text after this
position was not on stderr yet.  It is empty if there is no such file.  Exit 0: all of this was done.
"""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a file: see docs/architecture.md
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import select
import signal
import traceback

from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.live import loop
from tools.live.job import Reader
from tools.live.watcher import Watcher


def main(arguments: list[str]) -> None:
    """Returns when the attempt has ended."""
    control, run, messages = int(arguments[0]), arguments[1], arguments[2]
    unread = int(arguments[3]) if arguments[3] else None
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTTOU):  # the launcher decides what Ctrl-C means
        signal.signal(number, signal.SIG_IGN)
    beside = loop.Beside(control=control, messages=messages)
    try:
        loop.Screen(Watcher(Reader(run)), loop.console_for_stdout(), _terminal(), beside).run()
    except Exception as error:  # the job goes on
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {one_line(error)} ({os.path.basename(last.filename)}:{last.lineno})"
        print(tr("--console table has ended: {reason}", reason=reason), file=sys.stderr)
    if unread is not None:
        pass_on(unread, control)


def pass_on(unread: int, control: int) -> None:
    """Writes what has come into the file, and what still comes, to stderr until the attempt ends."""
    while True:
        ended = bool(select.select([control], [], [], 0)[0])
        while data := os.read(unread, 65536):
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
        if ended:
            return
        select.select([control], [], [], 0.5)


def _terminal() -> int | None:
    try:
        return os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
