"""Writes the page into a run's folder, or where the user wants it."""

from __future__ import annotations

import os

from hccl_tools.common import how_far
from hccl_tools.common.language import tr
from tools.progress import lines
from tools.run_page import document, saving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "report.html"
COMPARED = "compared.html"


def write(runs: Sequence[str], output: str | None) -> str:
    """Writes the page of these runs; returns its path.  Raises Refusal: why there is none."""
    path = output or os.path.join(runs[0], NAME if len(runs) == 1 else COMPARED)
    saving.check(path, document.PROGRAM)
    with how_far.doing(tr("making the page")):
        text = document.of_folders(runs, lines.load())
    saving.save(text, path, output)
    return path
