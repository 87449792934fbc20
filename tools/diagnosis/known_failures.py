"""The known failures: the entries of the file that LAUNCH_DIAGNOSES names, then configs/diagnoses.yaml."""

from __future__ import annotations

import os
import re
from bisect import bisect_right

from hccl_tools.check import schema_check
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.record import Record
from hccl_tools.common.words import short
from tools.config import config_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = project.path("configs", "diagnoses.yaml")
VARIABLE = "LAUNCH_DIAGNOSES"
TARGETS = ("Ascend", "GPU", "CPU")


class KnownFailure(Record):
    """One entry; schemas/diagnoses.schema.json says what the fields mean."""

    code: str
    patterns: list[re.Pattern[str]]  # for a text of many lines
    status: list[int]
    oom_kill: bool
    vague: bool
    targets: tuple[str, ...]  # device targets of launches that it holds for
    cause: str
    remedy: str
    zh: tuple[str, str] | None  # cause and remedy in Chinese
    samples: list[str]


def load(environ: Mapping[str, str] = os.environ) -> tuple[list[KnownFailure], list[str]]:
    """(entries, lines about what is wrong in the files); entries with a mistake are left out."""
    found: list[KnownFailure] = []
    complaints: list[str] = []
    for path in filter(None, (environ.get(VARIABLE), FILE)):
        entries, lines = load_file(path)
        found += entries
        complaints += lines
    return found, complaints


def load_file(path: str) -> tuple[list[KnownFailure], list[str]]:
    """The same for one file."""
    try:
        document = config_file.load(path)
    except config_file.ConfigError as error:
        return [], list(error.lines)
    problems = _problems(document.data)
    bad = {problem.pointer.split("/")[2] for problem in problems if problem.pointer.count("/") > 1}
    lines = [problem.line(document.place(problem.pointer)) for problem in problems]
    if any(problem.pointer.count("/") < 2 for problem in problems):  # no list of entries at all
        return [], lines
    return [_made(entry) for number, entry in enumerate(document.data["diagnoses"]) if str(number) not in bad], lines


def _problems(data: dict[str, Any]) -> list[Problem]:
    found: list[Problem] = schema_check.problems(data, schema_check.load_schema("diagnoses"))
    if found:
        return found
    for number, entry in enumerate(data["diagnoses"]):
        place = pointer("diagnoses", number)
        if "patterns" not in entry and "status" not in entry:
            text = tr("{code} has neither patterns nor status, so nothing can match it", code=entry["code"])
            found.append(Problem("missing-field", place, text, tr("add one of the two")))
        for index, pattern in enumerate(entry.get("patterns", [])):
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                text = tr("{pattern} is not a regular expression: {error}", pattern=short(pattern), error=error)
                found.append(
                    Problem("bad-value", f"{place}/patterns/{index}", text, tr("see docs.python.org/3/howto/regex"))
                )
    return found


def _made(entry: dict[str, Any]) -> KnownFailure:
    return KnownFailure(
        code=entry["code"],
        patterns=[re.compile(pattern, re.MULTILINE) for pattern in entry.get("patterns", [])],
        status=entry.get("status", []),
        oom_kill=entry.get("oom_kill", False),
        vague=entry.get("vague", False),
        targets=tuple(entry.get("targets", TARGETS)),
        cause=entry["cause"],
        remedy=entry["remedy"],
        zh=(entry["zh"]["cause"], entry["zh"]["remedy"]) if "zh" in entry else None,
        samples=entry.get("samples", []),
    )


def by_status(entries: list[KnownFailure], status: int | None, oom_kills: int) -> KnownFailure | None:
    """The entry of an exit status.  oom_kills: processes that the kernel killed for memory meanwhile."""
    fitting = (entry for entry in entries if status in entry.status and (oom_kills or not entry.oom_kill))
    return next(fitting, None)


def by_lines(
    entries: list[KnownFailure], lines: list[str], target: str | None = None
) -> list[tuple[KnownFailure, list[int]]]:
    """[(entry, indexes of the lines that it takes)] in the order of `entries`; a line belongs to the first.

    target: of the launch; None, where it is not known: all entries hold.  What an entry of another target would take
    goes only to an entry that is for this one: no GPU job failed because Ascend's libraries are missing.
    """
    text = "\n".join(lines)  # one search in the whole is many times faster than one per line
    starts, position = [], 0
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    found = []
    taken: set[int] = set()
    strange: set[int] = set()
    for entry in entries:
        matches = (match for pattern in entry.patterns for match in pattern.finditer(text))
        mine = {bisect_right(starts, match.start()) - 1 for match in matches} - taken
        if target and target not in entry.targets:
            strange |= mine
            continue
        if len(entry.targets) == len(TARGETS):
            mine -= strange
        if mine:
            taken |= mine
            found.append((entry, sorted(mine)))
    return found
