#!/usr/bin/env python3
"""The end of a launch: writes its outcome into launch.json and, after a failure, says why it failed.

Only scripts/lib/outcome.sh calls it, when the first member of the job has ended: Python reads what it needs while the
other members end.  Lines on stdin:

  failed                      a member has failed: be ready to explain that
  attempt EXIT ENDED LOGS     begins the outcome of an attempt
  first_failure NAME          and what may follow in it
  stopped_by WORD
  also_failed NAME            with --keep_going, one line for each
  member NAME STATUS SECONDS PID  -: none
  stragglers                  --straggler may have named some, see slow_ranks.py
  plogs KEEP                  the ranks used CANN; which of its logs stay, see kept_plogs.py
  end OOM_KILLS               there are no more lines; -: there is nothing to explain

The answer: "saved", or a line that says why the outcome is not in launch.json; then the lines of the explanation.
A dot precedes each line.
"""

from __future__ import annotations

import contextlib
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import one_line
from tools.launch import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TextIO

    Explain = Callable[[dict[str, Any], str, int, bool], None]


def main(run_dir: str, lines: Iterable[str]) -> None:
    """Does what the lines say; nothing, if the launcher was killed before it sent the last one."""
    attempts: list[dict[str, Any]] = []
    explain: Explain | None = None
    wanted: dict[str, list[str]] = {}
    for line in lines:
        word, *values = line.split()
        if word == "failed":
            explain = explainer()
        elif word in ("plogs", "stragglers"):
            wanted[word] = values
        elif word != "end":
            take(attempts, word, values)
        else:
            if "stragglers" in wanted:
                add_slow_ranks(run_dir, attempts[-1])
            document, trouble = finished(run_dir, attempts)
            print(trouble or "saved", flush=True)
            report_slow_ranks(run_dir, attempts[-1], not trouble)
            if values[0] != "-":
                (explain or explainer())(document, run_dir, int(values[0]), not trouble)
            if "plogs" in wanted:
                settle_plogs(run_dir, attempts, wanted["plogs"][0])
            return


def take(attempts: list[dict[str, Any]], word: str, values: list[str]) -> None:
    """A line about an attempt: it begins one, or belongs to the last one."""
    if word == "attempt":
        attempts.append(outcome(*values))
    elif word == "member":
        attempts[-1]["members"][values[0]] = dict(zip(("status", "seconds", "pid"), map(number, values[1:])))
    elif word == "also_failed":
        attempts[-1].setdefault(word, []).append(values[0])
    else:
        attempts[-1][word] = values[0]


def outcome(status: str, ended: str, logs: str) -> dict[str, Any]:
    """The outcome of an attempt about which only this is known."""
    return {
        "ended": ended,
        "exit": int(status),
        "logs": logs,
        "first_failure": None,
        "stopped_by": None,
        "members": {},
    }


def number(text: str) -> float | int | None:
    """A number from the launcher, or None."""
    return None if text == "-" else float(text) if "." in text else int(text)


def finished(run_dir: str, attempts: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """Writes the outcome; returns what is in launch.json, or belongs there, and on one line why it is not in it."""
    try:
        return record.finish(run_dir, attempts), ""
    except Refusal as error:
        trouble = str(error)
    except (OSError, ValueError) as error:
        trouble = tr(
            "{path}: cannot be written: {reason}",
            path=record.path(run_dir),
            reason=getattr(error, "strerror", None) or error,
        )
    return {"outcome": record.outcome(attempts)}, one_line(trouble)


def explainer() -> Explain:
    """Reads modules and known failures; returns a function of the document, its folder, the OOM kills, and whether
    the explanation goes into launch.json."""
    if sys.flags.no_site:  # outcome.sh starts us without installed packages, which saves a third of the start
        import site

        site.main()
    from tools.diagnosis import find, job_logs, main
    from tools.logs import known_failures

    known = known_failures.load()
    job_logs.get_ready(known[0])

    def explain(document: dict[str, Any], run_dir: str, oom_kills: int, saves: bool) -> None:
        if main.explain(document, run_dir, known, oom_kills, at_end=True) and saves:
            find.save(document, run_dir)

    return explain


def add_slow_ranks(run_dir: str, last: dict[str, Any]) -> None:
    """Adds the ranks that --straggler has named to the outcome.  Without their file there are none."""
    from tools.diagnosis import slow_ranks

    with contextlib.suppress(OSError, ValueError):
        found = slow_ranks.read(run_dir)
        if found:
            last["stragglers"] = found


def report_slow_ranks(run_dir: str, last: dict[str, Any], saved: bool) -> None:
    """Prints them; saved: they are in launch.json, so their own file can go."""
    if "stragglers" not in last:
        return
    from tools.diagnosis import slow_ranks

    for line in slow_ranks.report(last["stragglers"]):
        print(one_line(line), flush=True)
    if saved:
        with contextlib.suppress(OSError):
            os.unlink(slow_ranks.path(run_dir))


def settle_plogs(run_dir: str, attempts: list[dict[str, Any]], keep: str) -> None:
    """Removes and cuts CANN's own logs, and prints what was cut."""
    from tools.diagnosis import kept_plogs

    for line in kept_plogs.settle(run_dir, attempts, keep):
        print(line, flush=True)


class Dotted:
    """stdout with a dot before each line, as the launcher's scripts/lib/bus.sh reads it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.flush = stream, stream.flush

    def write(self, text: str) -> None:
        """What print() writes: the lines, then the end of the last one."""
        self.stream.write(text if text == "\n" else "." + text.replace("\n", "\n."))


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # for a terminal that knows no Chinese
    sys.stdout = Dotted(sys.stdout)  # print() needs no more
    try:
        main(sys.argv[1], sys.stdin)
    except Exception as error:  # whoever reads a failure's report needs no second failure in it
        reason = f"{type(error).__name__}: {one_line(error)}"
        print(tr("this run cannot be explained: {reason}", reason=reason))
    sys.stdout.flush()
    os._exit(0)  # the interpreter would take its modules apart first
