"""The end of a launch, in a forked child of the launcher: explains the failure, cuts the plogs, and makes the page.

The child reads its modules, and the known failures that it needs, while the other ranks end.  Then it gets one JSON
object on a pipe: the outcome, and the requested results.  It answers with lines.  "say TEXT" and "STYLE TEXT" are for
the user, with STYLE one of colours.CODES.  "done explained" ends the explanation.  In "page ANSWER", ANSWER is
"written", "large" or the reason why there is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

from hccl_tools.common import colours
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Told:
    """Turns the output of print() into lines for the launcher."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest = descriptor, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self.line("say", line)
        return len(text)

    def flush(self) -> None:
        """Whole lines are written at once."""

    def lines(self, texts: Iterable[str]) -> None:
        """Lines for the user, with their styles."""
        for text in texts:
            self.line(colours.style_of(text) or "say", one_line(text))

    def line(self, word: str, text: str) -> None:
        data = f"{word} {text}\n".encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(self._descriptor, data) :]


def serve(orders: int, tells: int, run_dir: str, plogs: bool) -> None:
    """Does what the launcher orders; nothing, if the launcher ends before that.  plogs: the ranks write some."""
    told = _speak(tells)
    _obey(orders, told, run_dir, *get_ready(plogs))


def serve_without_cause(orders: int, tells: int, run_dir: str) -> None:
    """The same after a good job, without what explains a failure: to read that takes longer than all the rest."""
    _obey(orders, _speak(tells), run_dir, None, "")


def _speak(tells: int) -> Any:
    """From now on print() tells the launcher."""
    told: Any = Told(tells)
    sys.stdout = told  # print() needs no more
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - for the rest of this process
    return told


def _obey(orders: int, told: Any, run_dir: str, known: Any, fault: str) -> None:
    """Does what is ordered; known, fault: see get_ready."""
    data = b""
    while block := os.read(orders, 1 << 16):
        data += block
    if not data:
        return
    wanted: dict[str, Any] = json.loads(data)
    if fault and "oom_kills" in wanted:
        print(fault)
    with telling():
        if "oom_kills" in wanted and known:
            explain(wanted, run_dir, known, told.lines)
    told.line("done", "explained")
    with telling():
        for line in settle(wanted, run_dir):
            print(line)
    if "page" in wanted:
        told.line("page", one_line(page(run_dir, *wanted["page"])))


@contextlib.contextmanager
def telling() -> Any:
    """A failure's report must not contain a second failure."""
    try:
        yield
    except Exception as error:
        print(cannot(error))


def cannot(error: Exception) -> str:
    """The line about why nothing is explained."""
    reason = f"{type(error).__name__}: {one_line(error)}"
    return tr("this run cannot be explained: {reason}", reason=reason)


def get_ready(plogs: bool = True) -> tuple[Any, str]:
    """(the known failures, "") when all modules are read; otherwise (None, why nothing can be explained)."""
    try:
        from tools.diagnosis import job_logs, main  # noqa: F401 - the environment may be gone when main is needed
        from tools.logs import known_failures

        known = known_failures.load()
        if plogs:  # without them nothing is looked for in whole logs
            job_logs.get_ready(known[0])
    except Exception as error:
        return None, cannot(error)
    return known, ""


def explain(wanted: dict[str, Any], run_dir: str, known: Any, tell: Any = None) -> None:
    """Reports why the run failed, by `tell`, otherwise on stdout; saves that, where the outcome is in launch.json."""
    from tools.diagnosis import find, main
    from tools.launch import record

    saved = not wanted["trouble"]
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, whatever it does
    signal.setitimer(signal.ITIMER_REAL, wanted["within"])
    document = record.read(run_dir) if saved else {"outcome": wanted["outcome"]}
    if main.explain(document, run_dir, known, wanted["oom_kills"], at_end=True, tell=tell) and saved:
        find.save(document, run_dir)
    signal.setitimer(signal.ITIMER_REAL, 0)


def settle(wanted: dict[str, Any], run_dir: str) -> list[str]:
    """Removes and cuts CANN's own logs; returns what was cut."""
    if "plogs" not in wanted:
        return []
    from tools.diagnosis import kept_plogs

    return kept_plogs.settle(run_dir, wanted["attempts"], wanted["plogs"])


def page(run_dir: str, size: str, seconds: float) -> str:
    """Writes the page of the run; returns the answer."""
    try:
        from tools.run_page import at_end

        return at_end.main(run_dir, size, seconds)
    except OSError as error:  # the user moves the folder, or removes it
        return f"{error.filename or run_dir}: {strerror(error)}"
    except Exception as error:  # the report needs no second failure in it
        return f"{type(error).__name__}: {error}"
