"""The page of one run, or of several: its parts, and their order."""

from __future__ import annotations

import os

from hccl_tools.common import how_far
from hccl_tools.common.language import tr
from tools.diagnosis.bundle.masking import Masker
from tools.progress import lines
from tools.run_page import (
    answer,
    attempts,
    charts,
    comparison,
    evidence,
    explained,
    hosts,
    named,
    outliers,
    reading,
    rows,
    saving,
    sections,
    surroundings,
)
from tools.run_page.markup import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.progress.lines import Pattern
    from tools.run_page.reading import RunData

NAME = "report.html"
COMPARED = "compared.html"
PROGRAM = "tools/report.py"


def of_folders(folders: Sequence[str], patterns: list[Pattern]) -> str:
    """The page of the run in a folder, or of several runs.  Raises Refusal: one is not there."""
    return of_runs([reading.read(folder, patterns) for folder in folders])


def of_runs(runs: list[RunData]) -> str:
    """The page of runs that have been read."""
    around = [surroundings.of(data) for data in runs]
    if len(runs) == 1:
        data, writer = runs[0], Writer(around[0].masker)
        found = outliers.find(data.curves)
        names = named.of(data, found)
        failure = explained.of(data, len(data.attempts) - 1)
        body = "".join(
            [
                answer.html_of(data, failure, found, names, writer),
                attempts.html_of(data, names, writer),
                evidence.html_of(data, failure, names, writer),
                evidence.hung_html(data, names, writer),
                sections.together(data, writer),
                sections.differing(data, found, answer.odd(data, found, names), writer),
                sections.before_start(data, writer),
                rows.html_of(data, writer, names),
                charts.html_of(charts.of_run(data, found, names)),
                hosts.html_of(data, names, writer),
                sections.environment(around[0], writer),
                sections.command(around[0], writer),
                sections.notes(data, writer),
            ]
        )
        return saving.file_of(data.name, body, PROGRAM)
    secrets = {value: name for each in around for value, name in each.secrets.items()}
    body = comparison.html_of(runs, around, Writer(Masker(secrets)))
    return saving.file_of(tr("{number} runs", number=len(runs)), body, PROGRAM)


# ---- Writes the page into a run's folder, or where the user wants it.


def write(runs: Sequence[str], output: str | None) -> str:
    """Writes the page of these runs; returns its path.  Raises Refusal: why there is none."""
    path = output or os.path.join(runs[0], NAME if len(runs) == 1 else COMPARED)
    saving.check(path, PROGRAM)
    with how_far.doing(tr("making the page")):
        text = of_folders(runs, lines.load())
    saving.save(text, path, output)
    return path
