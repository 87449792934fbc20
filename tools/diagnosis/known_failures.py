"""The known failures: configs/diagnoses.yaml, before it the entries of the file that LAUNCH_DIAGNOSES names."""

import os
import re
from collections import namedtuple

from hccl_tools.check import schema_check
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.words import one_line
from tools.config import config_file

FILE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "configs", "diagnoses.yaml"
)
VARIABLE = "LAUNCH_DIAGNOSES"

Diagnosis = namedtuple("Diagnosis", "code patterns status oom_kill vague cause remedy zh samples")
Diagnosis.__doc__ = """One known failure; schemas/diagnoses.schema.json says what the fields mean.

`patterns` are compiled, for a text of many lines; `zh` is (cause, remedy) or None.
"""


def load(environ=os.environ):
    """(list of Diagnosis, list of lines about what is wrong in the files); entries with a mistake are left out."""
    paths = [path for path in (environ.get(VARIABLE), FILE) if path]
    found, complaints = [], []
    for path in paths:
        entries, lines = load_file(path)
        found += entries
        complaints += lines
    return found, complaints


def load_file(path):
    """The same for one file."""
    try:
        document = config_file.load(path)
    except config_file.ConfigError as error:
        return [], error.lines
    problems = _problems(document.data)
    bad = {problem.pointer.split("/")[2] for problem in problems if problem.pointer.count("/") > 1}
    lines = [problem.line(document.place(problem.pointer)) for problem in problems]
    if any(problem.pointer.count("/") < 2 for problem in problems):  # no list of entries at all
        return [], lines
    return [_made(entry) for number, entry in enumerate(document.data["diagnoses"]) if str(number) not in bad], lines


def _problems(data):
    found = schema_check.problems(data, schema_check.load_schema("diagnoses"))
    if found:
        return found
    for number, entry in enumerate(data["diagnoses"]):
        place = pointer("diagnoses", number)
        if "patterns" not in entry and "status" not in entry:
            text = f"{entry['code']} has neither patterns nor status, so nothing can match it"
            found.append(Problem("missing-field", place, text, "add one of the two"))
        for index, pattern in enumerate(entry.get("patterns", [])):
            try:
                re.compile(pattern)
            except re.error as error:
                text = f"{one_line(pattern)} is no regular expression: {error}"
                found.append(
                    Problem("bad-value", f"{place}/patterns/{index}", text, "see docs.python.org/3/howto/regex")
                )
    return found


def _made(entry):
    return Diagnosis(
        code=entry["code"],
        patterns=[re.compile(pattern, re.MULTILINE) for pattern in entry.get("patterns", [])],
        status=frozenset(entry.get("status", [])),
        oom_kill=entry.get("oom_kill", False),
        vague=entry.get("vague", False),
        cause=entry["cause"],
        remedy=entry["remedy"],
        zh=(entry["zh"]["cause"], entry["zh"]["remedy"]) if "zh" in entry else None,
        samples=entry.get("samples", []),
    )


def by_status(entries, status, oom_kills):
    """The Diagnosis of an exit status, or None.  oom_kills: processes that the kernel killed for memory meanwhile."""
    for entry in entries:
        if status in entry.status and (oom_kills or not entry.oom_kill):
            return entry
    return None


def by_lines(entries, lines):
    """[(Diagnosis, indexes of the lines that it takes)] in the order of `entries`; a line belongs to the first."""
    text = "\n".join(lines)  # one search in the whole is many times faster than one a line
    starts, position = [], 0
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    found, taken = [], set()
    for entry in entries:
        mine = _line_numbers(entry.patterns, text, starts) - taken
        if mine:
            taken |= mine
            found.append((entry, sorted(mine)))
    return found


def _line_numbers(patterns, text, starts):
    from bisect import bisect_right

    return {bisect_right(starts, match.start()) - 1 for pattern in patterns for match in pattern.finditer(text)}
