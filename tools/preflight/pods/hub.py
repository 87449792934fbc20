"""The pod to which the other pods of a job connect: it waits for all, queries each, and sends each the result."""

from __future__ import annotations

import selectors
import time

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, short
from hccl_tools.hosts import node_sets
from hccl_tools.hosts.ask import Answer
from tools.attempts.wire import Connection
from tools.preflight import probe
from tools.preflight.pods import asked, messages
from tools.preflight.pods.entrance import SOON, Entrance, Pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tools.preflight.pods.entrance import Alike
    from tools.preflight.pods.place import Place

_TOLD_AFTER, _TOLD_EVERY = 10.0, 30.0  # seconds until a word about pods that are missing, and between two
_LAST_WORDS = 10.0  # seconds in which the results must go out
_MOST_NAMED = 8


class Hub(Entrance):
    """One meeting. say: prints text about missing pods."""

    def __init__(self, place: Place, alike: Alike, say: Callable[[str], None]) -> None:
        super().__init__(place, alike)
        self.say = say

    def meet(self) -> None:
        """Returns when all pods have come, or the time is over.  Raises Refusal: this host cannot listen."""
        self.open()
        began = time.monotonic()
        end, tell_at = began + self.place.wait, began + _TOLD_AFTER
        while (now := time.monotonic()) < end and not self.is_complete():
            if now >= tell_at:
                tell_at = now + _TOLD_EVERY
                self._tell_missing(now - began)
            self.step(end - now)
        self.door.close()
        self.final_names = self.names()

    def _tell_missing(self, waited: float) -> None:
        names = self.names()
        missing = [names[number] for number in self.missing()]
        what = node_sets.folded(missing, _MOST_NAMED) if missing else tr("the pods with ranks")
        counts = {"waited": round(waited), "seconds": self.place.wait}
        self.say(tr("waiting for {pods} ({waited} s of at most {seconds} s)", pods=what, **counts))

    def addresses(self) -> dict[str, str]:
        """{name: address} of the pods that are here."""
        names = self.names()
        found = {names[number]: pod.address for number, pod in sorted(self.come.items())}
        if self.place.number is not None and self.here:
            found[names[self.place.number]] = self.here
        return {name: found[name] for name in names if name in found}

    def join(self, line: Connection, process: int) -> None:
        """This pod's own answer comes by this line, from a child of this process."""
        assert self.place.number is not None
        self.child = process
        number = self.place.number
        self.come[number] = Pod(line, messages.own_name(), self.here)
        self.door.selector.register(line.plug, selectors.EVENT_READ, lambda: self.listen(number))

    def ask(self, question: Callable[[str], Any]) -> tuple[list[Answer], list[str]]:
        """(the answers of the pods, in their order; lines about those without one)."""
        names = self.names()
        for number, pod in self.come.items():
            pod.line.send(["asked", messages.packed(asked.told(question(names[number])))])
        end = time.monotonic() + probe.SECONDS
        while (left := end - time.monotonic()) > 0 and set(self.come) - set(self.answers):
            self.step(left)
        answers = [self.answers[number].replace(host=names[number]) for number in sorted(self.answers)]
        return answers, self._about_silent(names)

    def _about_silent(self, names: Sequence[str]) -> list[str]:
        """One line for each reason, however many pods have it."""
        alike = grouped((self._reason(number), name) for number, name in enumerate(names) if number not in self.answers)
        return [
            tr("{hosts}: no answer; {reason}", hosts=node_sets.folded(hosts, _MOST_NAMED), reason=short(why, 400))
            for why, hosts in alike.items()
        ]

    def _reason(self, number: int) -> str:
        if number in self.come:
            return tr("no answer within {seconds} s", seconds=probe.SECONDS)
        if number in self.reasons:
            return self.reasons[number]
        text = tr("it has not connected within {seconds} s; see: kubectl get pods -o wide", seconds=self.place.wait)
        if self.strangers:
            told = tr("{number} connections came from another job, or had no digest of this one", number=self.strangers)
            text = clauses(text, told)
        return clauses(text, tr("refused: {reason}", reason=self.turned_away)) if self.turned_away else text

    def is_late(self) -> bool:
        """Whether a pod has not come for an unknown reason: another start may succeed."""
        known = set(self.answers) | set(self.reasons) | set(self.come)
        return bool(set(range(self.pods or 0)) - known)

    def tell(self, document: Callable[[str], Any]) -> None:
        """Sends each pod its result, by its name; what cannot be sent in time is lost."""
        names = self.names()
        for number, pod in self.come.items():
            if number != self.place.number:
                pod.line.send(["verdict", messages.packed(document(names[number]))])
        end = time.monotonic() + _LAST_WORDS
        while time.monotonic() < end and any(pod.line.unsent for pod in self.come.values()):
            self.step(SOON)
