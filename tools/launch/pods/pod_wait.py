"""Waits in a pod for other pods or the operator, and reports for what: at once, then every half minute."""

from __future__ import annotations

import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import clauses
from tools.launch.pods.pod_table import NotReady

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from tools.launch.request import Request

    T = TypeVar("T")

TOO_LATE = 124  # exit code: what was waited for did not come
WAIT = 1800  # seconds: other nodes may have to load an image of many GiB
SAY_EVERY = 30  # seconds
LOOK_EVERY = 0.5  # seconds, but at most a tenth of the time goes into looking: a table may have 65,536 ranks


class Patience:
    """The seconds that all waits of one start may take together; `say` tells the user what they are for."""

    def __init__(self, request: Request, say: Callable[[str], None]) -> None:
        self.seconds = WAIT if request.pod_wait is None else request.pod_wait
        self.until = time.monotonic() + self.seconds
        self.looks_once = request.dry_run
        self.say = say
        self._said, self._said_at = "", 0.0

    def until_ready(self, look: Callable[[], T], remedy: str) -> T:
        """The result of `look`, once it no longer raises NotReady.  Raises Refusal: after the time, with the remedy."""
        began = time.monotonic()
        while True:
            looked = time.monotonic()
            try:
                return look()
            except NotReady as reason:
                now = time.monotonic()
                if self.looks_once or now >= self.until:
                    waited = tr("waited for {seconds} s: {reason}", seconds=round(now - began), reason=reason)
                    raise Refusal(TOO_LATE, clauses(waited, remedy)) from reason
                self.tell(str(reason), now - began, now)
            time.sleep(max(LOOK_EVERY, 9 * (time.monotonic() - looked)))

    def tell(self, reason: str, waited: float, now: float) -> None:
        """Reports what is waited for, if that is new, or if the user read it long ago."""
        if reason == self._said and now < self._said_at + SAY_EVERY:
            return
        self._said, self._said_at = reason, now
        self.say(
            tr(
                "waiting: {reason} ({waited} s of at most {seconds} s)",
                reason=reason,
                waited=round(waited),
                seconds=self.seconds,
            )
        )
