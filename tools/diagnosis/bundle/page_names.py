"""The names of the pages that a bundle contains in addition to the logs."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

EXPLANATION, CONTENTS, MASKED = "explanation.txt", "contents.txt", "masked.txt"
DOCTOR, VERSIONS = "doctor.txt", "versions.txt"
_ALL = (EXPLANATION, CONTENTS, MASKED, DOCTOR, VERSIONS)


def is_page(name: str, others: Collection[str]) -> bool:
    """Whether the file `name` is one of them: next to it are the two that every bundle has."""
    folder, base = os.path.split(name)
    return base in _ALL and all(os.path.join(folder, page) in others for page in (CONTENTS, MASKED))
