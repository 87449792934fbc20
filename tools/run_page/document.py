"""The page of one run, or of several: which parts it has, and their order."""

from __future__ import annotations

from hccl_tools.common.language import tr
from tools.diagnosis.bundle.masking import Masker
from tools.run_page import (
    answer,
    attempts,
    charts,
    comparison,
    environment,
    evidence,
    explained,
    frame,
    hosts,
    hung,
    named,
    outliers,
    reading,
    rows,
    sections,
    surroundings,
)
from tools.run_page.markup import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.progress.lines import Pattern
    from tools.run_page.reading import RunData

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
                hung.html_of(data, names, writer),
                sections.together(data, writer),
                sections.differing(data, found, answer.odd(data, found, names), writer),
                sections.before_start(data, writer),
                rows.html_of(data, writer, names),
                charts.html_of(charts.of_run(data, found, names)),
                hosts.html_of(data, names, writer),
                environment.html_of(around[0], writer),
                sections.command(around[0], writer),
                sections.notes(data, writer),
            ]
        )
        return frame.html_of(data.name, body, PROGRAM)
    secrets = {value: name for each in around for value, name in each.secrets.items()}
    body = comparison.html_of(runs, around, Writer(Masker(secrets)))
    return frame.html_of(tr("{number} runs", number=len(runs)), body, PROGRAM)
