"""The pod to which the other pods of a job connect: it waits for all, queries each, and sends each the result.

The functions after it are of the other pods: each connects, answers the question, and receives the result.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line, short
from hccl_tools.hosts import node_sets
from hccl_tools.hosts.ask import Answer
from hccl_tools.machine import programs
from tools.attempts.wire import Connection, Lost
from tools.preflight import probe
from tools.preflight.pods import asked, messages
from tools.preflight.pods.entrance import SOON, Entrance, Pod
from tools.preflight.pods.messages import Denied, Talk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tools.preflight.pods.entrance import Alike
    from tools.preflight.pods.place import Place
    from tools.preflight.question import Question

_TOLD_AFTER, _TOLD_EVERY = 10.0, 30.0  # seconds until a word about pods that are missing, and between two
_LAST_WORDS = 10.0  # seconds in which the results must go out
_MOST_NAMED = 8
ANSWER_WITHIN = 10.0  # seconds
_TRY_EVERY = 0.5  # seconds
_SAID_AFTER, _SAID_EVERY = 10.0, 30.0  # seconds until a word about the hub, and between two
_RESULT_WITHIN = 2 * probe.SECONDS + 10.0  # seconds from our answer to the result: others may take longer


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


def take_part(place: Place, alike: Alike, mine: Question, say: Callable[[str], None]) -> Any:
    """The result, as result.for_pods made it for this pod.  Raises Refusal."""
    talk, wait = _joined(place, alike, say)
    try:
        answer(talk, mine, wait + ANSWER_WITHIN)
        return messages.unpacked(talk.expect("verdict", _RESULT_WITHIN)[0])
    except Lost as error:
        where = tr("{address} port {port}", address=one_line(place.host), port=place.port)
        text = tr("the check of all pods has ended at {place}: {reason}", place=where, reason=error)
        raise Refusal(REFUSED, clauses(text, tr("see the log of that pod"))) from error
    finally:
        talk.line.plug.close()


def answer(talk: Talk, mine: Question, wait: float) -> None:
    """Waits so many seconds for the question, and answers it.  Raises Lost, and Denied."""
    question = asked.whole(mine, messages.unpacked(talk.expect("asked", wait)[0]))
    talk.send(["answer", messages.packed(probe.facts(question))], ANSWER_WITHIN)


# ---- the pod that the others connect to ----------------------------------------------------------


def beside(mine: Question) -> tuple[Connection, int]:
    """(the line to a child of this process, its id); the child answers for the hub's own pod.

    The hub must hear the others meanwhile.
    """
    ours, its = socket.socketpair()
    process = os.fork()
    if process:
        its.close()
        return messages.connection(ours), process
    status = 1
    try:
        programs.end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ours.close()
        answer(Talk(messages.connection(its)), mine, ANSWER_WITHIN)
        status = 0
    finally:
        os._exit(status)


# ---- the others ----------------------------------------------------------------------------------


def _joined(place: Place, alike: Alike, say: Callable[[str], None]) -> tuple[Talk, float]:
    """(the connection to the hub, the seconds until it asks).  Raises Refusal: it refused us, or never came."""
    began = time.monotonic()
    tell_at = _SAID_AFTER
    where = tr("{address} port {port}", address=one_line(place.host), port=place.port)
    while True:
        try:
            return _try_to_join(place, alike)
        except (Lost, OSError, UnicodeError) as error:
            reason = strerror(error)
        waited = time.monotonic() - began
        if waited >= place.wait:
            break
        if waited >= tell_at:
            tell_at = waited + _SAID_EVERY
            say(tr("waiting for the pod at {place} ({reason})", place=where, reason=reason))
        time.sleep(min(_TRY_EVERY, place.wait - waited))
    text = tr(
        "nobody answers at {place} after {seconds:.0f} s ({reason})", place=where, seconds=place.wait, reason=reason
    )
    remedy = tr("start the same command in all pods, and let the port through between them; see: kubectl get pods")
    raise Refusal(place.late, clauses(text, remedy))


def _try_to_join(place: Place, alike: Alike) -> tuple[Talk, float]:
    """Raises Denied, Lost, OSError and UnicodeError."""
    last: Exception = Lost(tr("it has no address"))
    for kind, address in _addresses(place):
        plug = socket.socket(kind, socket.SOCK_STREAM)
        try:
            _connect(plug, address)
            return _greet(plug, place, alike)
        except (OSError, Lost) as error:
            plug.close()
            last = error
        except BaseException:
            plug.close()
            raise
    raise last


def _addresses(place: Place) -> Iterator[tuple[int, Any]]:
    """The hub's, of both families: pods may have no IPv4."""
    for kind, _, _, _, address in socket.getaddrinfo(place.host, place.port, 0, socket.SOCK_STREAM):
        yield kind, address


def _connect(plug: socket.socket, address: Any) -> None:
    plug.settimeout(ANSWER_WITHIN)
    plug.connect(address)


def _greet(plug: socket.socket, place: Place, alike: Alike) -> tuple[Talk, float]:
    """Raises Denied, Lost and OSError."""
    nonce = os.urandom(16).hex()
    address = place.address or str(plug.getsockname()[0])
    talk = Talk(messages.connection(plug))
    same = [word for _, *words in alike for word in words]
    hello = ["hello", place.job, place.number, messages.own_name(), address, str(place.pods), nonce, *same]
    talk.send(hello, ANSWER_WITHIN)
    proof, wait = talk.expect("welcome", ANSWER_WITHIN)
    if proof != messages.proof(place.job, nonce):
        raise Denied(
            REFUSED, tr("the program that listens there does not know this job; see which program has the port")
        )
    return talk, float(wait)
