"""Reads parts of untrusted or damaged JSON; a value of an unexpected type counts as missing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def part(parent: object, key: str) -> dict[str, Any]:
    """The object parent[key]; empty if there is none."""
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, dict) else {}


def entries(parent: object, key: str) -> list[Any]:
    """The list parent[key]; empty if there is none."""
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, list) else []


def objects(parent: object, key: str) -> list[dict[str, Any]]:
    """The objects in the list parent[key]."""
    return [entry for entry in entries(parent, key) if isinstance(entry, dict)]


def texts(parent: object, key: str) -> list[str]:
    """The texts in the list parent[key]."""
    return [entry for entry in entries(parent, key) if isinstance(entry, str)]


def text(parent: object, key: str) -> str | None:
    """The text parent[key]."""
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if isinstance(found, str) else None


def number(parent: object, key: str) -> int | None:
    """The whole number parent[key]; True and False are none."""
    found = parent.get(key) if isinstance(parent, dict) else None
    return found if type(found) is int else None
