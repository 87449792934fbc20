"""Writes a file completely or not at all, despite full disks, signals and concurrent readers."""

from __future__ import annotations

import os
from collections.abc import Iterable


def write(text: str | Iterable[str], path: str, *, mode: int | None = None, errors: str = "strict") -> None:
    """Writes `text` to `path`; follows a link, does not replace it.  Raises OSError and leaves no part of a file.

    text: also as parts, so that a long one never is in memory as a whole; what they raise leaves no part, either.
    mode: the permissions of the new file; None: those that the umask allows.
    errors: what becomes of characters that UTF-8 cannot encode, as for open().
    """
    target = os.path.realpath(path)
    draft = f"{target}.{os.getpid()}.part"
    with open(draft, "x", encoding="utf-8", errors=errors) as file:  # "x": an existing draft is another process's
        try:
            file.writelines([text] if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                os.chmod(draft, mode)
            os.replace(draft, target)
        except BaseException:
            os.unlink(draft)
            raise
