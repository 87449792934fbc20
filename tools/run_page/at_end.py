"""Writes the page of a run at the job's end.  Only scripts/lib/page.sh calls it:

  at_end.py RUN small|any SECONDS     small: only if that takes less than a second

The answer is one line with a dot before it: "written"; "large", if the page would take longer; or why there is none.
A timer of the kernel ends the process after SECONDS, whatever it does.
"""

from __future__ import annotations

import os
import signal
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

_MOST_BYTES = 3 << 20  # of all logs: more takes half a second
_MOST_FILES = 1000
_MOST_RANKS = 256


def main(run: str, size: str, seconds: float) -> str:
    """Writes the page; returns the answer."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if size == "small" and not is_small(run):
        return "large"
    if sys.flags.no_site:  # page.sh starts us without installed packages: most jobs end here, or need only a few
        import site

        site.main()
    from hccl_tools.common.refusal import Refusal
    from tools.run_page import writing

    try:
        writing.write([run], None)
    except Refusal as refusal:
        return refusal.lines[0]
    return "written"


def is_small(run: str) -> bool:
    """Whether few ranks have short logs.  Raises OSError."""
    size = files = logs = 0
    folders = [run]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                files += 1
                if entry.name.startswith("restart_") and entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.startswith("rank_") and entry.name.endswith(".log"):
                    logs += 1
                    size += entry.stat().st_size
                if files > _MOST_FILES or logs > _MOST_RANKS or size > _MOST_BYTES:
                    return False
    return True


if __name__ == "__main__":
    try:
        answer = main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    except Exception as error:  # the report needs no second failure in it
        answer = f"{type(error).__name__}: {error}"
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    print("." + answer.replace("\n", " "), flush=True)
    os._exit(0)  # the interpreter would take its modules apart first
