"""Loads the known failures: from the file in LAUNCH_DIAGNOSES, configs/diagnoses.yaml and configs/faults/.

  python -m tools.logs.known_failures >tools/logs/known_failures.json

writes our own entries as JSON, which is read 30 times faster than YAML.  You need not run it after you edit the YAML
files: the JSON counts only while it has their SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from bisect import bisect_right
from functools import cache, cached_property

from hccl_tools.check import schema_check
from hccl_tools.common import project, typed
from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.record import Record
from tools.config import expressions
from tools.logs import line_heads, literals, owners, plog
from tools.logs.wanted import Expression

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

FILE = project.path("configs", "diagnoses.yaml")
FAULTS = tuple(
    project.path("configs", "faults", f"{name}.yaml")
    for name in ("cluster", "hccl", "runtime", "driver", "mindspore", "host")
)
COMPILED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_failures.json")
VARIABLE = "LAUNCH_DIAGNOSES"
TARGETS = ("Ascend", "GPU", "CPU")
_RECORD = 8  # lines around one: a message of MindSpore or Python may have its words on several


class KnownFailure(Record):
    """One entry; schemas/diagnoses.schema.json states what the fields mean."""

    code: str
    covers: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # regular expressions, as written
    texts: tuple[tuple[str, ...], ...] = ()  # of each of them: see literals.texts_of
    words: tuple[tuple[str, ...], ...] = ()
    logs: tuple[str, ...] = (owners.TRAIN, owners.PLOG)
    status: tuple[int, ...] = ()
    oom_kill: bool = False
    warnings: bool = True  # whether lines of the level WARNING count
    vague: bool = False
    targets: tuple[str, ...] = TARGETS  # device targets of launches that it holds for
    leads_to: tuple[str, ...] = ()
    cause: str
    remedy: str
    zh: tuple[str, str] | None = None  # cause and remedy in Chinese
    samples: tuple[str, ...] = ()

    @cached_property
    def expressions(self) -> list[Expression]:
        """The regular expressions, for lines that may have times and ranks before them."""
        texts = self.texts or [literals.texts_of(source) for source in self.sources]
        return list(map(Expression, map(line_heads.anchored, self.sources), texts))

    @property
    def patterns(self) -> list[re.Pattern[str]]:
        """The same, for a text of many lines, which may have times and ranks before them."""
        return [expression.pattern for expression in self.expressions]

    def takes(self, record: str) -> bool:
        """Whether one line, or a record of several, is this failure."""
        if not self.warnings and plog.warns(record):
            return False
        if any(pattern.search(record) for pattern in self.patterns):
            return True
        return any(in_order(words, record) for words in self.words)


def in_order(words: tuple[str, ...], text: str) -> bool:
    """Whether the text has all the words, each after the one before."""
    place = 0
    for word in words:
        place = text.find(word, place)
        if place < 0:
            return False
        place += len(word)
    return True


# --- reading ----------------------------------------------------------------------------------------------------------


def load(environ: Mapping[str, str] = os.environ) -> tuple[list[KnownFailure], list[str]]:
    """(entries, lines about what is wrong in the files); entries with a mistake are left out."""
    found: list[KnownFailure] = []
    complaints: list[str] = []
    if environ.get(VARIABLE):
        found, complaints = load_file(environ[VARIABLE])
    own = _compiled()
    if own is not None:
        return found + own, complaints
    for path in (FILE, *FAULTS):
        entries, lines = load_file(path)
        found += entries
        complaints += lines
    return found, complaints


def in_chinese(code: str) -> tuple[str, str] | None:
    """(cause, remedy) of the failure of this code, where the user reads Chinese: launch.json has them in English."""
    cause, remedy = _chinese().get(code, ("", "")) if speaks_chinese() else ("", "")
    return (typed.as_typed(cause), typed.as_typed(remedy)) if cause else None


@cache
def _chinese() -> dict[str, tuple[str, str]]:
    return {entry.code: (entry.zh[0], entry.zh[1]) for entry in load()[0] if entry.zh}


def load_file(path: str) -> tuple[list[KnownFailure], list[str]]:
    """The same for one file."""
    entries, lines = _read(path)
    return list(map(_made, entries)), lines


def _read(path: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The same, with the entries as they are in the file."""
    from tools.config import config_file  # imports yaml, which the compiled entries do not need

    try:
        document = config_file.load(path)
    except config_file.ConfigError as error:
        return [], list(error.lines)
    problems = _problems(document.data)
    bad = {problem.pointer.split("/")[2] for problem in problems if problem.pointer.count("/") > 1}
    lines = [problem.line(document.place(problem.pointer)) for problem in problems]
    if any(problem.pointer.count("/") < 2 for problem in problems):  # no list of entries at all
        return [], lines
    return [entry for number, entry in enumerate(document.data["diagnoses"]) if str(number) not in bad], lines


def _problems(data: dict[str, Any]) -> list[Problem]:
    found: list[Problem] = schema_check.problems(data, schema_check.load_schema("diagnoses"))
    if found:
        return found
    for number, entry in enumerate(data["diagnoses"]):
        place = pointer("diagnoses", number)
        if not {"patterns", "words", "status"} & entry.keys():
            text = tr("{code} has neither patterns nor words nor status, so nothing can match it", code=entry["code"])
            found.append(Problem("missing-field", place, text, tr("add one of them")))
        for index, pattern in enumerate(entry.get("patterns", [])):
            fault = expressions.compiled(pattern, pattern, re.MULTILINE)
            if isinstance(fault, str):
                hint = tr("see docs.python.org/3/howto/regex")
                found.append(Problem("bad-value", f"{place}/patterns/{index}", fault, hint))
    return found


def _made(entry: dict[str, Any]) -> KnownFailure:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    fields["sources"] = fields.pop("patterns", ())
    texts = entry.get("texts") or [literals.texts_of(source) for source in fields["sources"]]
    fields["texts"] = tuple(map(tuple, texts))
    fields["words"] = tuple(map(tuple, entry.get("words", ())))
    if "zh" in entry:
        fields["zh"] = (entry["zh"]["cause"], entry["zh"]["remedy"])
    return KnownFailure(**fields)


# --- our own entries as JSON ------------------------------------------------------------------------------------------


def _compiled() -> list[KnownFailure] | None:
    """The entries of our own files; None where they were edited since, or the JSON is not there."""
    try:
        with open(COMPILED, encoding="utf-8") as file:
            document = json.load(file)
        return [_made(entry) for entry in document["diagnoses"]] if document["sha256"] == _digest() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _digest() -> str:
    digest = hashlib.sha256()
    for path in (FILE, *FAULTS):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def compile_all() -> str:
    """The text of known_failures.json.  Raises SystemExit with the mistakes in the files."""
    entries: list[dict[str, Any]] = []
    for path in (FILE, *FAULTS):
        found, complaints = _read(path)
        if complaints:
            raise SystemExit("\n".join(complaints))
        entries += found
    for entry in entries:
        if "patterns" in entry:
            entry["texts"] = [literals.texts_of(source) for source in entry["patterns"]]
    rows = ",\n".join(json.dumps(entry, ensure_ascii=False, sort_keys=True) for entry in entries)
    return f'{{"sha256": "{_digest()}", "diagnoses": [\n{rows}\n]}}\n'


# --- matching ---------------------------------------------------------------------------------------------------------


def by_status(entries: list[KnownFailure], status: int | None, oom_kills: int) -> KnownFailure | None:
    """The entry of an exit status.  oom_kills: processes that the kernel killed for memory meanwhile."""
    fitting = (entry for entry in entries if status in entry.status and (oom_kills or not entry.oom_kill))
    return next(fitting, None)


def by_lines(
    entries: list[KnownFailure], lines: list[str], target: str | None = None, kind: str = owners.TRAIN
) -> list[tuple[KnownFailure, list[int]]]:
    """[(entry, indexes of the lines that it takes)] in the order of `entries`; a line belongs to the first.

    target: of the launch; None, where it is not known: all entries hold.  What an entry of another target would take
    goes only to an entry that is for this one: no GPU job failed because Ascend's libraries are missing.
    kind: of the log; entries that are for others take nothing.
    """
    text = "\n".join(lines)  # one search in the whole is many times faster than one per line
    lowered = text.lower()
    starts, position = [], 0
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    found = []
    taken: set[int] = set()
    strange: set[int] = set()
    for entry in entries:
        if kind not in entry.logs:
            continue
        mine = {bisect_right(starts, place) - 1 for place in _places(entry, text, lowered, lines, starts)} - taken
        mine = {index for index in mine if not plog.is_harmless(lines[index])}
        if not entry.warnings:
            mine = {index for index in mine if not plog.warns(lines[index])}
        if target and target not in entry.targets:
            strange |= mine
            continue
        if len(entry.targets) == len(TARGETS):
            mine -= strange
        if mine:
            taken |= mine
            found.append((entry, sorted(mine)))
    return found


def _places(entry: KnownFailure, text: str, lowered: str, lines: list[str], starts: list[int]) -> Iterable[int]:
    """Where in the text what the entry takes begins, or where the longest of its words does."""
    for expression in entry.expressions:
        if expression.may_take(text, lowered):
            yield from (match.start() for match in expression.pattern.finditer(text))
    for words in entry.words:
        longest = max(words, key=len)
        place = text.find(longest)
        while place >= 0:
            index = bisect_right(starts, place) - 1
            if in_order(words, lines[index]) or in_order(words, record_around(lines, index)):
                yield place
            place = text.find(longest, starts[index] + len(lines[index]))


def record_around(lines: list[str], index: int) -> str:
    """The lines around one that may belong to the same message."""
    return "\n".join(lines[max(0, index - _RECORD) : index + _RECORD + 1])


if __name__ == "__main__":
    sys.stdout.buffer.write(compile_all().encode())
