"""launch.json, the record of a run: its plan, and once it has ended its outcome."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def path(run_dir: str) -> str:
    """The file, in the run's folder."""
    return os.path.join(run_dir, "launch.json")


def read(run_dir: str) -> dict[str, Any]:
    """The whole document.  Raises OSError, ValueError."""
    with open(path(run_dir), encoding="utf-8", errors="surrogateescape") as file:
        document: dict[str, Any] = json.load(file)
    return document


def write(run_dir: str, document: dict[str, Any]) -> None:
    """Replaces the document, whole or not at all.  Raises OSError."""
    part = path(run_dir) + ".part"
    with open(part, "w", encoding="utf-8", errors="backslashreplace") as file:  # \udcff is JSON
        file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
    os.chmod(part, os.stat(path(run_dir)).st_mode & 0o777)
    os.replace(part, path(run_dir))


def finish(run_dir: str, attempts: list[dict[str, Any]]) -> None:
    """Adds the outcome: that of the last attempt, with those of the earlier ones in it.  Raises OSError, ValueError."""
    *earlier, last = attempts
    write(run_dir, {**read(run_dir), "outcome": {**last, "attempts": earlier} if earlier else last})
