"""Reads untrusted or damaged files and JSON: a value of an unexpected type counts as missing.  Writes whole files."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterable

from hccl_tools.common.language import marked, tr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import TypeAlias

JsonObject: TypeAlias = "dict[str, Any]"  # a JSON object; the values may be anything

TOO_DEEP = marked("it is nested too deeply")
_MOST = 1 << 28  # characters


def refuse_special(path: str) -> None:
    """Raises OSError for a folder, a pipe and the like: a pipe without a writer would never be opened."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, tr("it is not a regular file"))


def read_json(path: str, errors: str = "strict") -> Any:
    """The value in the JSON file `path`; `errors`: of its decoding.  Raises OSError, and ValueError if it is none."""
    refuse_special(path)
    with open(path, encoding="utf-8", errors=errors) as file:
        text = file.read(_MOST + 1)
    if len(text) > _MOST:
        raise ValueError(tr("it has more than {limit} characters", limit=_MOST))
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(tr(TOO_DEEP)) from error


def write_whole(text: str | Iterable[str], path: str, *, mode: int | None = None, errors: str = "strict") -> None:
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


def json_text(document: object) -> str:
    """The document as JSON in ASCII.  JSON has no nan and no inf: those are texts."""
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
