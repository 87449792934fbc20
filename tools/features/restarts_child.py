"""The process next to a launcher with restarts: reads how far attempts came, and waits for what they leave.

The process begins before the first rank, and reads its modules then.  Orders are lines of JSON: ["look", the number of
an attempt that has ended, facts of it], ["free", seconds, the launcher's own processes].  It answers with lines: "came
NUMBER JSON"; "note TEXT"; "waits TEXT", once for each thing that is held.  Then comes "free SECONDS" or "held JSON", a
text and a command.
"""

from __future__ import annotations

import json
import os
import select
import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import one_line, some
from tools.attempts.look import Asked, Looks
from tools.attempts.saves import Saves
from tools.progress import lines
from tools.supervise import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tools.progress.lines import Pattern
    from tools.supervise.held import Held, Wanted

MOMENT = 1.0  # seconds in which what an attempt has left usually ends; it is not reported
SOON, OFTEN, SELDOM = 0.1, 1.0, 5.0  # seconds between two looks: in the first moment, later, and after a minute
SHOWN = 4  # things that a message names


def main(orders: int, tells: int, facts: dict[str, Any]) -> None:
    """facts: the folders where ranks may save, and what the next attempt needs free, if that is checked."""
    os.nice(5)  # the ranks come first
    wanted = held.Wanted(**facts["wanted"]) if facts["wanted"] else None
    try:
        Server(orders, tells, Saves(facts["folders"]), wanted).serve()
    except BrokenPipeError:
        return  # the launcher has ended


class Server:
    """Answers the launcher's orders, until there are no more."""

    def __init__(self, orders: int, tells: int, saves: Saves, wanted: Wanted | None) -> None:
        """wanted: None: it is not checked whether the host is free."""
        self._orders, self._tells, self._rest = orders, tells, b""
        patterns, fault = table()
        self._looks = Looks(patterns, saves)
        self._watch = None if wanted is None else held.Watch(wanted)
        for text in filter(None, (fault, self._watch.note if self._watch else "")):
            self.tell("note", text)

    def tell(self, word: str, text: str) -> None:
        """Writes one line, in one write."""
        os.write(self._tells, os.fsencode(f"{word} {one_line(text)}\n"))

    def serve(self) -> None:
        """Returns when the launcher gives no more orders, or has ended."""
        while block := os.read(self._orders, 1 << 16):
            *whole, self._rest = (self._rest + block).split(b"\n")
            for line in whole:
                self._obey(*json.loads(line))

    def _obey(self, word: str, *values: Any) -> None:
        if word == "look":
            number, asked = values
            came = self._looks.look(Asked(**asked))
            self.tell("came", f"{number} {json.dumps(came.as_dict())}")
        else:
            self._free(*values)

    def _free(self, seconds: float, own: Sequence[int]) -> None:
        """Waits until nothing is held, for at most so long, or until there is another order."""
        begun, told = time.monotonic(), set[str]()
        while found := self._watch.look(own) if self._watch else []:
            waited = time.monotonic() - begun
            new = [one.what for one in found if one.what not in told]
            if waited >= min(MOMENT, seconds) and new:
                told.update(new)
                self.tell("waits", some(new, SHOWN))
            if waited >= seconds:
                self.tell("held", json.dumps(answer(found)))
                return
            if select.select([self._orders], [], [], pause(waited))[0]:
                return  # something else has ended the job
        self.tell("free", f"{time.monotonic() - begun:.0f}" if told else "")


def pause(waited: float) -> float:
    """Seconds until the next look."""
    return SOON if waited < MOMENT else OFTEN if waited < 60 else SELDOM


def answer(found: Sequence[Held]) -> tuple[str, str]:
    """What is held, and a command that helps."""
    return some([one.what for one in found], SHOWN), held.remedy(found)


def table() -> tuple[list[Pattern], str]:
    """(the lines of trainers that have numbers, why the user's own are not among them)."""
    try:
        return lines.load(), ""
    except Refusal as refusal:
        reason = refusal.lines[0]
        text = tr(
            "note: restarts are counted without the patterns of {variable}: {reason}",
            variable=lines.VARIABLE,
            reason=reason,
        )
        return lines.load({}), text
