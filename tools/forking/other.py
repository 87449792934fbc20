"""The agent of any other rank of a host: the first rank's agent starts its rank, see first.py.

It knows its rank by the process id: it signals that process, and receives a report of its end.  If the first agent is
gone, it ends the rank.
"""

from __future__ import annotations

import errno

from tools.forking import link, order
from tools.forking.first import WITHIN
from tools.forking.link import Process, Reader
from tools.rank import agent
from tools.rank.told import REFUSED
from tools.rank.watcher import LOOK_EVERY
from tools.supervise.events import Ended, Left, LeftFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from hccl_tools.common.record import Row
    from tools.forking.link import Message
    from tools.rank.environment import Environment
    from tools.rank.told import Told

SOON, OFTEN = 0.01, 0.5  # seconds until the next try to reach the first agent, which starts in the same moment
LOOK_OFTEN = 0.2  # seconds between two looks at a rank whose end is not reported any more
KILLED, STOPPED = 137, 143


class Other(agent.Agent):
    """See above."""

    def __init__(self, told: Told, log: str, away: bool) -> None:
        super().__init__(told, log, away)
        self._word = told["IMPORT_ONCE"].partition("\n")[0]
        self._connection = -1
        self._verdict: Message = ()  # what becomes of the rank
        self._process: Process | None = None  # the rank, if it is a fork
        self._lost = False  # the first agent is gone

    # ---- the start ---------------------------------------------------------------------------------------------------

    def spawn(self, words: list[str], found: Environment, log: int) -> None:
        """Lets the first agent start the rank; if that agent is missing, starts it here, or reports it."""
        self.words = words
        wanted = order.of(self.told, words, found, self.log)
        if self._connect() and self._send(link.packed(("order", *wanted))):
            while not self._verdict and not self._lost and self.goes_on(LOOK_EVERY):
                pass
        kind, *rest = self._verdict or ("failed" if self._lost else "without",)
        if kind == "began":
            self._process = Process(*rest)
            self.has_begun(self._process.pid, words, found)
            link.tell(self._connection, ("known",))
        elif kind == "failed":
            self.heed(self.grace + 5)  # the launcher hears of it from the first agent
            self.status = STOPPED if self.stops else REFUSED
        elif self.stops:
            self.status = STOPPED
        else:
            super().spawn(words, found, log)

    def _connect(self) -> bool:
        """Reaches the first agent, which may come later; False: it does not come in time, or this one is to stop."""
        name, end = link.address(self._word, self.engine), self.world.now() + WITHIN + self.told.number("RESTART")
        pause = SOON
        while self.world.now() < end:
            try:
                self._connection = link.connect(name)
            except OSError as error:
                if error.errno not in (errno.ECONNREFUSED, errno.EAGAIN):
                    return False
            else:
                reader = Reader(b"", self._heard, self._end)
                self.world.watch(self._connection, reader.take)
                return True
            if not self.goes_on(pause):
                return False
            pause = min(OFTEN, 2 * pause)
        return False

    def _send(self, text: bytes) -> bool:
        """The order may be longer than what the socket takes at once."""
        text = self.told["SECRET"].encode() + text
        while text:
            sent = link.send(self._connection, text)
            if sent < 0 or (sent == 0 and not self.goes_on(SOON)):
                return False
            text = text[sent:]
        return True

    # ---- what the first agent says -----------------------------------------------------------------------------------

    def _heard(self, message: Message) -> Iterable[Row]:
        kind, *rest = message
        name = self.told.name
        if kind in ("began", "without", "failed"):
            self._verdict = message
        elif kind == "ended":
            return [Ended([(name, rest[0])])]
        elif kind == "left":
            self.voice.tell_left(Left(name, *rest))
        elif kind == "failure":
            self.voice.tell_left(LeftFailed(name, *rest))
        return ()

    def _end(self) -> Iterable[Row]:
        """The first agent is gone: it was killed, because it stays until this one has left."""
        self._connection = -1  # the world closes it
        self._lost = True
        return ()

    # ---- a rank whose end nobody tells -------------------------------------------------------------------------------

    def look(self, seconds: float) -> None:
        """Watches the rank, and ends it if the first agent is gone."""
        super().look(seconds)
        process = self._process
        if not self._lost or process is None or self.status is not None:
            return
        if process.runs():
            self.stop()
        else:
            self.status = STOPPED if self.stops else KILLED  # the kernel has told it to nobody here

    def longest(self) -> float:
        """Seconds until there is something to do."""
        return min(LOOK_OFTEN, super().longest()) if self._lost else super().longest()
