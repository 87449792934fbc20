"""Finds the numbers in the lines of any trainer: loss, step, step time, accuracy.

configs/progress.yaml has the table of lines; a user's file, named in LAUNCH_PROGRESS, comes before it.
"""

from __future__ import annotations

import os
import re

from hccl_tools.check import schema_check
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line, short
from tools.config import config_file, expressions
from tools.logs import log_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Values = dict[str, "float | str"]
    Span = tuple[str, int, int]  # the name of a group, and the columns where its text begins and ends

FILE = project.path("configs", "progress.yaml")
VARIABLE = "LAUNCH_PROGRESS"
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?nan|[-+]?inf(?:inity)?"
COUNT = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+"
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
_COLUMNS = log_tail.MOST_COLUMNS
_DIGITS = 15  # of a step's number: a float has no more
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LONGEST = 16 << 10  # bytes of a line
MOST_KINDS = 4096  # that are remembered
_LONGEST_KIND = 400  # bytes
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_REPEATS = re.compile(r"\{\d*,?\d*\}")


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
    return pattern.replace("<number>", f"(?:{NUMBER})").replace("<count>", f"(?:{COUNT})")


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


def last_of(text: str, patterns: list[Pattern]) -> Values:
    """See Kinds.last_of."""
    return Kinds(patterns).last_of(text)


class Kinds:
    """Reads lines with one table.

    Lines that differ in digits only are of one kind.  Where no expression of the table tells digits apart, all of them
    have their numbers at the same columns.  Most lines of a log are of few kinds, and cost no search.
    """

    def __init__(self, patterns: list[Pattern]) -> None:
        self._patterns = patterns
        self._remembers = not any(_tells_digits_apart(pattern) for pattern in patterns)
        self._kinds: dict[bytes, tuple[Span, ...]] = {}  # without spans: it states nothing

    def of_block(self, block: bytes) -> Iterator[tuple[bytes, Values]]:
        """Each line of the block with a meaning, and its meaning."""
        for line, kind in zip(block.split(b"\n"), block.translate(_ONE_DIGIT).split(b"\n")):
            spans = self._kinds.get(kind)
            if spans is not None and not spans:
                continue
            text = _plain(line)
            if spans is None:
                spans = self._spans(text, kind)
            values = values_of((name, text[begin:end]) for name, begin, end in spans)
            if values:
                yield line, values

    def _spans(self, text: str, kind: bytes) -> tuple[Span, ...]:
        """Where the values of the line are; remembered for others of its kind."""
        found = _first_match(text, self._patterns)
        spans = (
            tuple((name, *found.span(name)) for name in found.groupdict() if found[name] is not None) if found else ()
        )
        if self._remembers and len(kind) <= _LONGEST_KIND:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            self._kinds[kind] = spans
        return spans

    def last_of(self, text: str) -> Values:
        """The last value of each kind in a text of many lines; those of a place (epoch, step) are of one line."""
        values: Values = {}
        for said in self._of_text(text):
            if "step" in said:
                values = {name: value for name, value in values.items() if name not in WHOLE}
            elif "step" in values:  # the end of an epoch, after its last step
                said = {name: value for name, value in said.items() if name not in WHOLE}
            values.update(said)
        return values

    def losses_of(self, text: str) -> list[float]:
        """All losses in a text of many lines."""
        return [float(said["loss"]) for said in self._of_text(text) if "loss" in said]

    def _of_text(self, text: str) -> Iterator[Values]:
        return (values for _, values in self.of_block(text.encode("utf-8", "replace")))


def _tells_digits_apart(pattern: Pattern) -> bool:
    text = pattern.expression.pattern
    for known in (NUMBER, COUNT, "[0-9]"):
        text = text.replace(known, "")
    return bool(re.search(r"\d|\(\?P=", _REPEATS.sub("", text)))


def _plain(line: bytes) -> str:
    text = line[:_LONGEST].decode("utf-8", "replace")
    return text[:_COLUMNS] if text.isprintable() else "".join(log_tail.lines_of(line[:_LONGEST])[:1])


def _first_match(line: str, patterns: list[Pattern]) -> re.Match[str] | None:
    """The match of the first entry that has one."""
    for pattern in patterns:
        if found := pattern.expression.search(line, 0, _COLUMNS):
            return found
    return None


def values_of(texts: Iterable[tuple[str, str | None]]) -> Values:
    """The values of an entry's groups, by name; text that is not a number is left out."""
    values: Values = {}
    for name, text in texts:
        if text is None:
            continue
        value = text if name == "metric" else _seconds(text) if name == "left" else _number(name, text)
        if value is not None:
            values[name] = value
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


def _number(name: str, text: str) -> float | None:
    """None for other text, which an expression of the user may find."""
    if "," in text and _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if name not in WHOLE:
        return _float(text)
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
