"""Validates the answers of the hosts, which are untrusted: only facts of the catalogue, harmless text, limited size."""

from __future__ import annotations

import sys

from hccl_tools.common.quoting import harmless
from hccl_tools.common.words import short
from tools.preflight.catalog.rows import COLLECTORS, knows
from tools.preflight.difference import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tools.preflight.difference import Value

_MOST_FACTS = 2000
_MOST_ENTRIES = 256  # of a list
_MOST_TEXT = 300  # characters of a value
_MOST_KEY = 4200  # the longest path, and what is before it
_MOST_NUMBER = 1 << 62
_FILES = "file:"


def take(content: Any) -> Answer | None:
    """The Answer in the data that a host has sent; None if it has another form."""
    facts, failed = (content.get(part) for part in ("facts", "failed")) if isinstance(content, dict) else (None, None)
    if not isinstance(facts, dict) or not isinstance(failed, dict) or len(facts) > _MOST_FACTS:
        return None
    taken = {sys.intern(harmless(key)): _value(value) for key, value in facts.items() if _is_key(key)}
    why = {name: short(harmless(str(text)), _MOST_TEXT) for name, text in failed.items() if name in COLLECTORS}
    return Answer(facts=taken, failed=why, links=content.get("links"))


def _is_key(key: str) -> bool:
    return len(key) <= _MOST_KEY and knows(key)


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_text(str(entry)) for entry in value[:_MOST_ENTRIES])
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if abs(value) < _MOST_NUMBER else None
    return _text(str(value))


def _text(text: str) -> str:
    return sys.intern(short(harmless(text), _MOST_TEXT))  # hosts that are alike say the same thousand times


def complete(answers: Mapping[str, Answer], files: Mapping[str, str]) -> dict[str, Answer]:
    """The same answers, with the asker's digest, {path: digest}, for files that a host did not report."""
    named = {key for answer in answers.values() for key in answer.facts if key.startswith(_FILES)}
    known = {_FILES + path: digest for path, digest in files.items()}
    added = {key: known[key] for key in sorted(named) if key in known}
    return {
        host: answer if "files" in answer.failed else answer.replace(facts={**added, **answer.facts})
        for host, answer in answers.items()
    }
