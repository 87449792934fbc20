"""Reads untrusted or damaged files: JSON values of a given type; refuses folders, pipes and other special files."""

from __future__ import annotations

import errno
import json
import os

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
