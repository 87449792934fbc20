"""The numbers in a trainer's lines: loss, step, step time, accuracy, whatever trainer printed them.

The table of lines is configs/progress.yaml; a file of the user's, named in LAUNCH_PROGRESS, comes before it.
"""

from __future__ import annotations

import os
import re
from collections import deque

from hccl_tools.check import schema_check
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line, short
from tools.config import config_file, expressions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Values = dict[str, "float | str"]

FILE = project.path("configs", "progress.yaml")
VARIABLE = "LAUNCH_PROGRESS"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?nan|[-+]?inf(?:inity)?"
WHOLE = ("epoch", "epochs", "step", "steps")
GROUPS = (
    *WHOLE,
    "loss",
    "lr",
    "step_ms",
    "step_s",
    "steps_per_s",
    "data_ms",
    "before_ms",
    "samples_per_s",
    "metric",
    "value",
    "percent",
    "left",
)
_COLUMNS = 4000  # of a line: keeps an expression from trying again and again
_DIGITS = 15  # of a step's number: a float has no more


class Pattern(Record):
    """An entry of the table."""

    name: str  # what prints such a line
    expression: re.Pattern[str]
    samples: tuple[tuple[str, Values], ...] = ()


def load(environ: Mapping[str, str] = os.environ) -> list[Pattern]:
    """The entries, the user's own first.  Raises Refusal, with a line for each mistake in the user's file."""
    paths = [environ[VARIABLE]] if environ.get(VARIABLE) else []
    return [pattern for path in (*paths, FILE) for pattern in load_file(path)]


def load_file(path: str) -> list[Pattern]:
    """The entries of one file.  Raises Refusal."""
    try:
        document = config_file.load(path)
    except config_file.ConfigError as error:
        raise Refusal(USAGE, *error.lines) from error
    problems = schema_check.problems(document.data, schema_check.load_schema("progress")) or _problems(document.data)
    if problems:
        raise Refusal(USAGE, *(problem.line(document.place(problem.pointer)) for problem in problems))
    return [
        Pattern(
            name=entry["name"],
            expression=re.compile(_with_numbers(entry["pattern"])),
            samples=tuple((sample["line"], sample["says"]) for sample in entry.get("samples", ())),
        )
        for entry in document.data["progress"]
    ]


def _with_numbers(pattern: str) -> str:
    return pattern.replace("<number>", f"(?:{NUMBER})")


def _problems(data: dict[str, list[dict[str, str]]]) -> list[Problem]:
    """What is wrong with the expressions."""
    found = []
    for number, entry in enumerate(data["progress"]):
        if text := _fault_of(entry["pattern"]):
            place = pointer("progress", number, "pattern")
            found.append(Problem("bad-value", place, text, tr("see docs.python.org/3/howto/regex")))
    return found


def _fault_of(pattern: str) -> str:
    """What is wrong with a regular expression; nothing, if it can be used."""
    expression = expressions.compiled(_with_numbers(pattern), pattern)
    if isinstance(expression, str):
        return expression
    unknown = [name for name in expression.groupindex if name not in GROUPS]
    if unknown:
        known = ", ".join(GROUPS)
        return tr("a group is named {name}; the names are {known}", name=one_line(unknown[0]), known=known)
    if not expression.groupindex:
        return tr("{pattern} has no group with a name, such as (?P<loss><number>)", pattern=short(pattern))
    return ""


def of_line(line: str, patterns: list[Pattern]) -> Values:
    """What the line says, by the name of the group; empty if no pattern matches.  Of a long line only its beginning."""
    for pattern in patterns:
        if found := pattern.expression.search(line, 0, _COLUMNS):
            return values_of(found)
    return {}


def last_of(text: str, patterns: list[Pattern]) -> Values:
    """The last value of each kind in a text of many lines; those of a place (epoch, step) are of one line.

    It costs a search of the text for each pattern, not for each line.
    """
    matches = [found for pattern in patterns for found in deque(pattern.expression.finditer(text), maxlen=1)]
    values: Values = {}
    for found in sorted(matches, key=lambda each: each.start(), reverse=True):  # the last one counts
        new = values_of(found)
        if "step" in values:
            new = {name: value for name, value in new.items() if name not in WHOLE}
        values = {**new, **values}
    return values


def _seconds(text: str) -> float:
    """A time such as 1:02:03, 02:03 or "2 days, 1:02:03"; nan if it is none."""
    days, _, clock = text.rpartition("day")
    seconds = 0
    for part in clock.lstrip("s, ").split(":"):
        if not part.isdecimal() or len(part) > _DIGITS:
            return float("nan")
        seconds = 60 * seconds + int(part)
    return float(seconds + 86400 * int(days)) if days.strip().isdecimal() else float(seconds)


def losses_of(text: str, patterns: list[Pattern]) -> list[float]:
    """All losses in a text of many lines, of the pattern that finds most of them."""
    found = (
        [_float(match["loss"]) for match in pattern.expression.finditer(text)]
        for pattern in patterns
        if "loss" in pattern.expression.groupindex
    )
    return max(([loss for loss in losses if loss is not None] for losses in found), key=len, default=[])


def values_of(found: re.Match[str]) -> Values:
    """What a match of an entry's expression says, by the name of the group; text that is not a number is left out."""
    values: Values = {}
    for name, text in found.groupdict().items():
        if text is None:
            continue
        value = text if name == "metric" else _seconds(text) if name == "left" else _number(name, text)
        if value is not None:
            values[name] = value
    return values


def _number(name: str, text: str) -> float | None:
    """None for other text: an expression of the user may find any, such as 1,000"""
    if name not in WHOLE:
        return _float(text)
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _float(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
