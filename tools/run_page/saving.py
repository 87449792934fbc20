"""Keeps a page as a file, and replaces no file that another program has written."""

from __future__ import annotations

import os

from hccl_tools.common import documents, whole_file
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from tools.run_page import frame

_MODE = 0o600  # as rank_N.env, parts of which are in the page of a run


def save(text: str, path: str, output: str | None) -> None:
    """Writes a page, as whole or not at all.  output: the path, if the user has named it.  Raises Refusal."""
    try:
        whole_file.write(text, path, mode=_MODE, errors="replace")
    except OSError as error:
        raise _cannot(path, error, output) from error


def check(path: str, program: str) -> None:
    """Raises Refusal for a file that is not a page of this program."""
    if not os.path.lexists(path):
        return
    try:
        documents.refuse_special(path)
        ours = frame.has_mark(path, program)
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
