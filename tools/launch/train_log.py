"""train.log in the folder where the command was typed: rank 0's log, under the name that the tutorials use.

While the job runs it is a link, so that people can follow it.  The tutorials' own ``python ... &> ./train.log``, typed
later, would write through a link, or a hard link, into the log of the run.  So a copy replaces the link when the run
ends.  Its last line states what it is, and its length.  The next launch recognises the copy by this line.  A file that
somebody has changed belongs to that person.
"""

from __future__ import annotations

import os

from hccl_tools.common.words import short_path

NAME = "train.log"
MOST = 16 << 20  # bytes of a log that are copied: the last ones
_CUT = b"... the beginning is left out here\n"
_MARK = b"--- "
_END = b" bytes of "
_LONGEST = 5000  # bytes of the last line


def is_copy(path: str) -> bool:
    """Whether the file is such a copy, unchanged."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _LONGEST))
            end = b"\n" + file.read()  # an empty log leaves nothing before the last line
            last = end.rpartition(b"\n" + _MARK)[2] if b"\n" + _MARK in end else b""
    except OSError:
        return False
    number, found, rest = last.partition(_END)
    if not found or not number.isdigit() or len(number) > 12 or not rest.endswith(b"\n") or rest.count(b"\n") != 1:
        return False
    return size == int(number) + len(_MARK) + len(last)


def settle(folder: str, log: str) -> None:
    """Replaces the link in `folder` by a copy of the log, if the link leads to this log.

    A link that cannot be replaced stays.
    """
    link = os.path.join(folder, NAME)
    draft = f"{link}.{os.getpid()}.part"
    try:
        if not os.path.islink(link) or not os.path.samefile(link, log):
            return
        with open(draft, "xb", buffering=0) as file:
            text = _last(log)
            _write(file.fileno(), text + b"%s%d%s%s\n" % (_MARK, len(text), _END, os.fsencode(short_path(log))))
        os.replace(draft, link)
    except OSError:
        try:
            os.unlink(draft)
        except OSError:
            return  # it was not made


def _last(log: str) -> bytes:
    """The log, or its last bytes; with an end of its last line."""
    with open(log, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= MOST:
            text = file.read(MOST)
        else:
            file.seek(size - MOST)
            text = _CUT + file.read(MOST).partition(b"\n")[2]
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _write(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]
