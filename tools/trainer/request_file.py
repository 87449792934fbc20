"""The file that tells ranks the reason of SIGTERM: to save and to end, or because the job has failed.

It is in the run's folder, and exists before the signal.  It has the form that MindSpore's callback OnRequestExit reads
from its config_file.
"""

from __future__ import annotations

import os

NAME = "request.json"
LONGEST = 4096
_KEY = "GracefulExit"


def path(run_dir: str) -> str:
    """The file of this run."""
    return os.path.join(run_dir, NAME)


def tell(run_dir: str, asks: bool) -> str:
    """Writes it, whole or not at all; returns why it could not be written, or "".

    asks: the ranks are to save and to end.  A request stays one if the job fails after it.
    """
    file = path(run_dir)
    draft = f"{file}.{os.getpid()}.part"
    try:
        if read(file) in (True, asks):
            return ""
        with open(draft, "w", encoding="ascii") as out:
            out.write(f'{{"{_KEY}": {int(asks)}}}\n')
        os.replace(draft, file)
    except OSError as error:
        _remove(draft)
        return error.strerror or str(error)
    return ""


def forget(run_dir: str) -> None:
    """Removes it: an attempt begins."""
    _remove(path(run_dir))


def _remove(file: str) -> None:
    try:
        os.unlink(file)
    except OSError:
        return  # it is not there; where it cannot be removed, it cannot be written either


def read(file: str) -> bool | None:
    """Whether it asks the ranks to save and to end; None: it states nothing."""
    import json  # few launches get so far

    try:
        with open(file, "rb") as text:
            found = json.loads(text.read(LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    value = found.get(_KEY) if isinstance(found, dict) else None
    return value == 1 if value in (0, 1) else None
