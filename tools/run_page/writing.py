"""Writes the page into a run's folder, or where the user wants it."""

from __future__ import annotations

import os

from hccl_tools.common import documents, how_far, whole_file
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from tools.progress import lines
from tools.run_page import document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "report.html"
COMPARED = "compared.html"
_MODE = 0o600  # as rank_N.env, parts of which are in it
_HEAD = 500  # bytes, in which our mark is


def write(runs: Sequence[str], output: str | None) -> str:
    """Writes the page of these runs; returns its path.  Raises Refusal: why there is none."""
    path = output or os.path.join(runs[0], NAME if len(runs) == 1 else COMPARED)
    _check(path)
    with how_far.doing(tr("making the page")):
        text = document.of_folders(runs, lines.load())
    try:
        whole_file.write(text, path, mode=_MODE, errors="replace")
    except OSError as error:
        raise _cannot(path, error, output) from error
    return path


def _check(path: str) -> None:
    """Raises Refusal for a file that is not a page of ours."""
    if not os.path.lexists(path):
        return
    try:
        documents.refuse_special(path)
        with open(path, "rb") as file:
            ours = document.MARK.encode() in file.read(_HEAD)
    except OSError as error:
        raise _cannot(path, error, path) from error
    if not ours:
        text = tr("{path}: there is another file of that name; name a new one with --output FILE", path=one_line(path))
        raise Refusal(USAGE, text)


def _cannot(path: str, error: OSError, output: str | None) -> Refusal:
    reason = error.strerror or str(error)
    text = tr("{path}: cannot be written: {reason}", path=one_line(path), reason=reason)
    if output is None:
        text += tr("; name another place with --output FILE")
    return Refusal(USAGE, text)
