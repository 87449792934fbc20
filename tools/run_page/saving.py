"""Writes the file of a page with its head, style and scripts; never replaces a file of another program."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time

from hccl_tools.common import documents
from hccl_tools.common.language import speaks_chinese, strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from tools.run_page.markup import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))
_VENDOR = os.path.join(_HERE, "vendor")
_STYLE = os.path.join(_HERE, "style")
# In this order, so that a phone and paper have the last word.
_STYLES = ("base", "answer", "times", "charts", "hosts", "comparison", "small", "print")
_HEAD = 500  # bytes, in which a mark is
_MODE = 0o600  # as rank_N.env, parts of which are in the page of a run


def save(text: str, path: str, output: str | None) -> None:
    """Writes a page, as whole or not at all.  output: the path, if the user has named it.  Raises Refusal."""
    try:
        documents.write_whole(text, path, mode=_MODE, errors="replace")
    except OSError as error:
        raise _cannot(path, error, output) from error


def check(path: str, program: str) -> None:
    """Raises Refusal for a file that is not a page of this program."""
    if not os.path.lexists(path):
        return
    try:
        documents.refuse_special(path)
        ours = has_mark(path, program)
    except OSError as error:
        raise _cannot(path, error, path) from error
    if not ours:
        text = tr("{path}: there is another file of that name; name a new one with --output FILE", path=one_line(path))
        raise Refusal(USAGE, text)


def _cannot(path: str, error: OSError, output: str | None) -> Refusal:
    reason = strerror(error)
    text = tr("{path}: cannot be written: {reason}", path=one_line(path), reason=reason)
    if output is None:
        text += tr("; name another place with --output FILE")
    return Refusal(USAGE, text)


# ---- The file around a page: its head, the style, the scripts.  It asks for nothing, and runs only these scripts.


def mark(program: str) -> str:
    """The mark in a file from this program: such a file is ours, and may be replaced."""
    return f'<meta name="generator" content="{escaped(os.path.basename(program))}">'


def has_mark(path: str, program: str) -> bool:
    """Whether the program wrote this file.  Raises OSError."""
    with open(path, "rb") as file:
        return mark(program).encode() in file.read(_HEAD)


def file_of(title: str, body: str, program: str, charts: bool = True) -> str:
    """The page as a file.  body: HTML; program: what writes it; charts: whether there may be some."""
    scripts = [*([_text(_VENDOR, "uPlot.iife.min.js")] if charts else []), _text(_HERE, "page.js")]
    written = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
    foot = tr("Written by {program} on {time}. It needs no network.", program=program, time=written)
    parts = {
        "language": "zh" if speaks_chinese() else "en",
        "mark": mark(program),
        "policy": _policy(scripts),
        "title": escaped(title),
        "style": "".join([_text(_VENDOR, "uPlot.min.css"), *(_text(_STYLE, f"{name}.css") for name in _STYLES)]),
        "body": body,
        "foot": escaped(foot),
        "scripts": "\n".join(f"<script>{each}</script>" for each in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _text(_HERE, "page.html"))


def _policy(scripts: Sequence[str]) -> str:
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    known = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {known}"


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()
