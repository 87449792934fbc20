"""One HTML file of everything: the parts, the style, the scripts; it asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time

from hccl_tools.common.language import speaks_chinese, tr
from tools.diagnosis.bundle.masking import Masker
from tools.run_page import (
    answer,
    attempts,
    charts,
    comparison,
    environment,
    evidence,
    explained,
    hosts,
    hung,
    named,
    outliers,
    reading,
    rows,
    sections,
    surroundings,
)
from tools.run_page.markup import Writer, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.progress.lines import Pattern
    from tools.run_page.reading import RunData

MARK = '<meta name="generator" content="report.py">'  # a file with it is ours, and may be replaced
_HERE = os.path.dirname(os.path.abspath(__file__))
_VENDOR = os.path.join(_HERE, "vendor")
_STYLE = os.path.join(_HERE, "style")
# In this order, so that a phone and paper have the last word.
_STYLES = ("base", "answer", "times", "charts", "hosts", "comparison", "small", "print")


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
        return _page(data.name, body)
    secrets = {value: name for each in around for value, name in each.secrets.items()}
    return _page(tr("{number} runs", number=len(runs)), comparison.html_of(runs, around, Writer(Masker(secrets))))


def _page(title: str, body: str) -> str:
    """Puts the parts into page.html.  Only scripts that are known may run, and nothing may be loaded."""
    scripts = [_text(_VENDOR, "uPlot.iife.min.js"), _text(_HERE, "page.js")]
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src " + " ".join(
        f"'sha256-{digest}'" for digest in digests
    )
    written = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
    parts = {
        "language": "zh" if speaks_chinese() else "en",
        "mark": MARK,
        "policy": policy,
        "title": escaped(title),
        "style": "".join([_text(_VENDOR, "uPlot.min.css"), *(_text(_STYLE, f"{name}.css") for name in _STYLES)]),
        "body": body,
        "foot": escaped(tr("Written by tools/report.py on {time}. It needs no network.", time=written)),
        "scripts": "\n".join(f"<script>{each}</script>" for each in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _text(_HERE, "page.html"))


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()
