"""Answers a query on a host: takes the question, and prints one frame; see ask.py.

It runs on every host of a job, so it imports little.
"""

from __future__ import annotations

import _thread
import binascii
import json
import os
import re
import signal
import sys
import zlib

from hccl_tools.common import project, version
from hccl_tools.common.refusal import Refusal
from hccl_tools.hosts import finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hccl_tools.common.documents import JsonObject

_LENGTH = 300  # bytes of a part, which has two characters for each
_MOST_PARTS = 1 << 12  # of one frame


def answer(work: Callable[[str, Any, Callable[[str], None]], object]) -> int:
    """Answers with the result of `work(host, question, tell)`, or with the Refusal that it raised; the exit code is 0.

    host: the name that the asker has for this host.  When the asker has gone, this process gets SIGTERM.
    An asker of another version gets only ours.
    """
    asked = unpacked(sys.stdin.buffer.readline())
    _end_with_asker()
    name, question = one_of(asked)
    content = None
    lines: list[str] = []
    ours = [version.number(), finder.digest(project.ROOT)]  # as elsewhere.Version.words
    try:
        if asked.get("version") == ours:
            content = work(name, question, lines.append)
    except Refusal as refusal:
        lines = list(refusal.lines)
    said = frame({"content": content, "lines": lines, "version": ours}, asked["nonce"])
    if "variable" in asked:
        said = _cut_in_pieces(said, asked["nonce"], name)
    sys.stdout.buffer.write(said)
    sys.stdout.buffer.flush()
    return 0


def one_of(asked: Any) -> tuple[str, Any]:
    """(the name of this host, its question).  If all hosts get the same text, a variable has the name: one_step."""
    if "variable" not in asked:
        return asked["host"], asked["question"]
    name = os.environ.get(asked["variable"], "")
    return name, {**asked["common"], **asked["own"].get(name, {})}


def _end_with_asker() -> None:
    """From now on the end of stdin is SIGTERM for this process: a lost ssh connection does not end it otherwise."""
    main = _thread.get_ident()  # threading takes a millisecond to import

    def watch() -> None:
        while os.read(0, 1024):
            pass
        signal.pthread_kill(main, signal.SIGTERM)

    _thread.start_new_thread(watch, ())


def frame(answer: JsonObject, nonce: str) -> bytes:
    """The fields of an Answer as bytes, with line ends around them that keep them apart."""
    data = packed(answer)
    return b"\n<<hccl_tools %s %d %s>>\n" % (nonce.encode(), zlib.crc32(data), data)


def packed(document: object) -> bytes:
    """The form in which it is sent from host to host, in one line."""
    return binascii.b2a_base64(zlib.compress(json.dumps(document).encode(), 1), newline=False)


def unpacked(data: bytes) -> Any:
    """The document of `packed`.  Raises ValueError and zlib.error."""
    return json.loads(zlib.decompress(binascii.a2b_base64(data)))


def _cut_in_pieces(frame: bytes, nonce: str, name: str) -> bytes:
    """The lines that carry this frame of the host `name` in one common output, of which srun keeps short lines intact.

    A node's slurmstepd passes on at most 1,024 bytes at once.  Output of other nodes may come between the parts of a
    longer line.  So each line is shorter, and names its host and its part.
    """
    parts = [frame[at : at + _LENGTH].hex() for at in range(0, len(frame), _LENGTH)]
    lines = (f"\n<<hccl_tools {nonce} {name} {number} {part}>>\n" for number, part in enumerate(parts))
    return "".join(lines).encode()


def joined_pieces(stdout: bytes, nonce: str) -> dict[str, bytes]:
    """{host: its frame}, as far as all parts are there."""
    found: dict[str, dict[int, bytes]] = {}
    pattern = rb"<<hccl_tools %s ([A-Za-z0-9_.-]{1,255}) ([0-9]{1,5}) ((?:[0-9a-f]{2})+)>>" % nonce.encode()
    for name, number, part in re.findall(pattern, stdout):
        if int(number) < _MOST_PARTS:
            found.setdefault(name.decode(), {})[int(number)] = bytes.fromhex(part.decode())
    return {
        name: b"".join(parts[number] for number in sorted(parts))
        for name, parts in found.items()
        if sorted(parts) == list(range(len(parts)))
    }
