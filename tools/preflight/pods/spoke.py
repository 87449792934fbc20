"""A pod that connects to the hub: it answers the questions, and receives the result."""

from __future__ import annotations

import os
import signal
import socket
import time

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.machine import programs
from tools.attempts.wire import Connection, Lost
from tools.preflight import probe
from tools.preflight.pods import asked, messages
from tools.preflight.pods.messages import Denied, Talk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tools.preflight.pods.entrance import Alike
    from tools.preflight.pods.place import Place
    from tools.preflight.question import Question

ANSWER_WITHIN = 10.0  # seconds
_TRY_EVERY = 0.5  # seconds
_SAID_AFTER, _SAID_EVERY = 10.0, 30.0  # seconds until a word about the hub, and between two
_RESULT_WITHIN = 2 * probe.SECONDS + 10.0  # seconds from our answer to the result: others may take longer


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
            reason = getattr(error, "strerror", None) or str(error)
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
