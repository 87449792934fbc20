"""Masks secrets in environments and in launch.json, whose form shows where a value begins and ends."""

from __future__ import annotations

import json
import re

from tools.diagnosis.bundle import masking, names
from tools.diagnosis.bundle.view import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator
    from typing import Any

    from tools.diagnosis.bundle.masking import Masker

# As `export -p` of bash writes it, or printf %q.
_VARIABLE = re.compile(
    rb"""^(?:declare -x |export )?(?P<name>[A-Za-z_]\w*)="""
    rb"""(?:"(?P<double>(?:\\.|[^"\\])*)(?:"|\Z)|\$'(?P<dollar>(?:\\.|[^'\\])*)(?:'|\Z)"""
    rb"""|'(?P<single>[^']*)(?:'|\Z)|(?P<word>(?:\\.|[^\s\\])*))""",
    re.MULTILINE | re.DOTALL,
)
_IN_DOUBLE = re.compile(rb'\\([\\$"`\n])')
_IN_WORD = re.compile(rb"\\(.)", re.DOTALL)
_IN_DOLLAR = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"E": b"\x1b", b"e": b"\x1b"}
MASK = masking.MASK.decode()


def secrets_of_environment(data: bytes) -> dict[str, str]:
    """{value: name} of the secret variables in a file such as rank_0.env."""
    return {_unquoted(found): name for found, name in _secret_variables(data)}


def environment(data: bytes, masker: Masker, counts: Counter[str]) -> bytes:
    """A file such as rank_0.env without the secrets in it."""
    spans = [Span(*found.span(found.lastgroup or 0), name) for found, name in _secret_variables(data)]
    return masking.applied(data, masking.merged(spans + masker.spans(data)), counts)


def variables(data: bytes) -> dict[str, str]:
    """{name: value} of a file such as rank_0.env, with the secrets in it."""
    found = (found for found in _VARIABLE.finditer(data) if found.lastgroup)
    return {one["name"].decode(): _unquoted(one) for one in found}


def _secret_variables(data: bytes) -> Iterator[tuple[re.Match[bytes], str]]:
    for found in _VARIABLE.finditer(data):
        name = found["name"].decode()
        if found.lastgroup and found[found.lastgroup] not in (b"", masking.MASK) and names.is_secret(name):
            yield found, name


def _unquoted(found: re.Match[bytes]) -> str:
    group = found.lastgroup or ""
    value = found[group]
    if group == "double":
        value = _IN_DOUBLE.sub(rb"\1", value)
    elif group == "dollar":
        value = _IN_DOLLAR.sub(_character, value)
    elif group == "word":
        value = _IN_WORD.sub(rb"\1", value)
    return value.decode("utf-8", "surrogateescape")


def _character(found: re.Match[bytes]) -> bytes:
    if found[1] or found[2]:
        return bytes([int(found[1], 8) & 255 if found[1] else int(found[2], 16)])
    return _LETTERS.get(found[3], found[3])


# --- launch.json ------------------------------------------------------------------------------------------------------


def secrets_of_json(value: Any, name: str = "") -> dict[str, str]:
    """{value: name} of the texts in a JSON document that a secret name has.  Raises RecursionError."""
    if isinstance(value, str):
        return {value: name} if names.is_secret(name) else {}
    found: dict[str, str] = {}
    if isinstance(value, dict):
        for key, inner in value.items():
            found.update(secrets_of_json(inner, _inner(name, key)))
    elif isinstance(value, list):
        for before, inner in zip(["", *value], value):
            found.update(secrets_of_json(inner, _option(before) or name))
    return found


def document(data: bytes, masker: Masker, counts: Counter[str]) -> bytes:
    """A JSON document without the secrets in it; what is not JSON is masked as a log."""
    try:
        masked = _masked(json.loads(data.decode("utf-8", "surrogateescape")), "", masker, counts)
        return (json.dumps(masked, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")
    except (ValueError, RecursionError):
        counts.clear()
        return masking.applied(data, masker.spans(data), counts)


def _masked(value: Any, name: str, masker: Masker, counts: Counter[str]) -> Any:
    if isinstance(value, dict):
        return {masker.text(key): _masked(inner, _inner(name, key), masker, counts) for key, inner in value.items()}
    if isinstance(value, list):
        pairs = zip(["", *value], value)
        return [_masked(inner, _option(before) or name, masker, counts) for before, inner in pairs]
    secret = names.is_secret(name) and not isinstance(value, bool)
    if secret and value not in (None, "", MASK):
        counts[masking.shown(name)] += 1
        return MASK
    return masker.text(value, counts) if isinstance(value, str) else value


def _inner(name: str, key: str) -> str:
    """The name of what is below the key of an object that has the name: all that is in a secret is one."""
    return name if names.is_secret(name) else key


def _option(word: Any) -> str:
    """The name of an option whose value is the next word; empty, if the word is none."""
    return word if isinstance(word, str) and re.fullmatch(r"--?[A-Za-z][\w-]*", word) else ""
