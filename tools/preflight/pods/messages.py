"""The messages between the pods of a check: lines of tools/attempts/wire.py, some with a packed document.

    pod   hello JOB NUMBER NAME ADDRESS PODS NONCE, then digest and words of what must be alike    answer DOCUMENT
    hub   welcome PROOF SECONDS, or refused TEXT             asked DOCUMENT             verdict DOCUMENT

The pods are called by their host names, which kubectl shows.  The hub admits only pods that have the digest of the job.
A pod answers only a hub that proves that it has the digest.
"""

from __future__ import annotations

import base64
import binascii
import collections
import hashlib
import json
import select
import socket
import time
import zlib

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.hosts import answering, hostfile
from tools.attempts import wire
from tools.attempts.wire import Connection, Lost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

LONGEST = 1 << 20  # bytes of a line
_MOST_DOCUMENT = 1 << 23  # bytes of a document that is not packed
_LAST_WORDS = 400  # characters of other texts
FROM_PODS: dict[str, tuple[type, ...]] = {"answer": (str,)}
TO_PODS: dict[str, tuple[type, ...]] = {
    "welcome": (str, int),
    "refused": (str,),
    "asked": (str,),
    "verdict": (str,),
}
_LONGEST = 63  # characters of a host name


class Denied(Refusal):
    """The hub does not let this pod take part."""


def connection(plug: socket.socket) -> Connection:
    """A connection for such lines."""
    return Connection(plug, longest=LONGEST, most_unsent=LONGEST)


def proof(job: str, nonce: str) -> str:
    """The answer to this nonce that only a pod of the job can give."""
    return hashlib.sha256(f"welcome {job} {nonce}".encode("utf-8", "surrogatepass")).hexdigest()


def packed(document: object) -> str:
    """A document as one word of a line."""
    return answering.packed(document).decode("ascii")


def unpacked(text: str) -> Any:
    """The document in such a word, which may be anything.  Raises Lost."""
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), _MOST_DOCUMENT)
        if not reader.eof:
            raise Lost(tr("it sent a document that is too long"))
        return json.loads(data)
    except (ValueError, binascii.Error, zlib.error, RecursionError) as error:
        raise Lost(tr("it sent something that is not JSON")) from error


class Talk:
    """The side that waits for the next line."""

    def __init__(self, line: Connection) -> None:
        self.line = line
        self._came: list[list[Any]] = []

    def send(self, words: list[Any], seconds: float) -> None:
        """Sends a line, within this number of seconds.  Raises Lost."""
        end = time.monotonic() + seconds
        self.line.send(words)
        while self.line.unsent:
            self._wait(select.POLLOUT, end)
            self.line.flush()

    def next(self, seconds: float) -> tuple[str, list[Any]]:
        """(word, values) of the hub's next line.  Raises Lost, and Denied."""
        end = time.monotonic() + seconds
        while not self._came:
            self._wait(select.POLLIN, end)
            self._came = self.line.receive()
        word, values = wire.take(self._came.pop(0), TO_PODS, LONGEST)
        if word == "refused":
            raise Denied(78, values[0][:_LAST_WORDS])
        return word, values

    def expect(self, word: str, seconds: float) -> list[Any]:
        """The values of the hub's next line, which is of this kind.  Raises Lost, and Denied."""
        found, values = self.next(seconds)
        if found != word:
            raise Lost(tr("it sent an unknown message"))
        return values

    def _wait(self, event: int, end: float) -> None:
        poll = select.poll()
        poll.register(self.line.plug, event)
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise Lost(tr("it does not answer"))


def own_name() -> str:
    """The name of this pod; empty if it is unknown."""
    name = socket.gethostname().partition(".")[0]
    return name if is_name(name) else ""


def is_name(text: str) -> bool:
    """Whether another pod may be called so."""
    return 0 < len(text) <= _LONGEST and "@" not in text and hostfile.fault_of_host(text) is None


def choose_names(pods: int, told: Mapping[int, str], known: Sequence[str]) -> list[str]:
    """The names by number. told: host names, which several pods of one node may share; known: others."""
    uses = collections.Counter(told.values())
    found = []
    for number in range(pods):
        name = told.get(number, "")
        usual = known[number] if number < len(known) else f"pod-{number}"
        found.append(name if name and uses[name] == 1 else usual)
    return found if len(set(found)) == pods else [f"pod-{number}" for number in range(pods)]
