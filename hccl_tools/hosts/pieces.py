"""Splits the frames of many hosts into short lines for one common output, because srun keeps only short lines intact.

A node's slurmstepd passes on at most 1,024 bytes at once.  Output of other nodes may come between the parts of a longer
line.  So each line is shorter, and names its host and its part.
"""

from __future__ import annotations

import re

_LENGTH = 300  # bytes of a part, which has two characters for each
_MOST_PARTS = 1 << 12  # of one frame
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")


def cut(frame: bytes, nonce: str, name: str) -> bytes:
    """The lines that carry this frame of the host `name`."""
    parts = [frame[at : at + _LENGTH].hex() for at in range(0, len(frame), _LENGTH)]
    lines = (f"\n<<hccl_tools {nonce} {name} {number} {part}>>\n" for number, part in enumerate(parts))
    return "".join(lines).encode()


def joined(stdout: bytes, nonce: str) -> dict[str, bytes]:
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
