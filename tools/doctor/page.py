"""The doctor's page: its lines, as text that can be pasted into a bug report, and as JSON."""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from hccl_tools.common import colours
from hccl_tools.common.colours import columns, padded
from hccl_tools.common.language import marked, tr
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import count, one_line
from hccl_tools.machine.programs import Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.doctor.npu_smi import Npus


TIMED_OUT, NOT_FOUND = 124, 127  # as Ended has them
Sections = Mapping[str, Iterable["Line"]]  # by their titles

MIB, GIB = 1 << 20, 1 << 30

# ABSENT: it is not on this machine and need not be.  UNKNOWN: nothing here tells whether it is right.
OK, ABSENT, UNKNOWN, WARNING, PROBLEM = STATUSES = (
    marked("ok"),
    marked("absent"),
    marked("unknown"),
    marked("warning"),
    marked("problem"),
)
_STYLES = {
    OK: colours.GOOD,
    ABSENT: colours.FAINT,
    UNKNOWN: colours.FACT,
    WARNING: colours.CAUTION,
    PROBLEM: colours.FAILURE,
}


class Line(Row):
    name: str
    status: str  # one of STATUSES
    text: str  # what was found
    remedy: str = ""  # what to do


def worst(statuses: Iterable[str]) -> str:
    """The most severe of some statuses, OK if there are none."""
    return max(statuses, key=STATUSES.index, default=OK)


def as_text(sections: Sections, made: str, colour: bool) -> str:
    """The page for a person.  made: when, as text; colour: whether to use it."""
    lines = [line for section in sections.values() for line in section]
    width = max((columns(line.name) for line in lines), default=0)
    page = [tr("Report of this machine, {made}", made=made)]
    for title, section in sections.items():
        page += ["", colours.shown(tr(title), colours.HEAD, colour)]
        for line in section:
            status = colours.shown(padded(tr(line.status), len(PROBLEM)), _STYLES[line.status], colour)
            page.append(f"  {status}  {padded(line.name, width)}  {without_home(line.text)}")
            if line.remedy:
                arrow = colours.shown("->", colours.FACT, colour)
                page.append(" " * (len("  problem  ") + width + 2) + f"{arrow} {without_home(line.remedy)}")
    return "\n".join([*page, "", colours.shown(_summary(lines), colours.HEAD, colour), ""])


def _summary(lines: list[Line]) -> str:
    counts = Counter(line.status for line in lines)
    numbers = {
        PROBLEM: count(counts[PROBLEM], "problem"),
        WARNING: count(counts[WARNING], "warning"),
        UNKNOWN: tr("{number} unknown", number=counts[UNKNOWN]),
        ABSENT: tr("{number} absent", number=counts[ABSENT]),
        OK: tr("{number} ok", number=counts[OK]),
    }
    listed = ", ".join(text for status, text in numbers.items() if counts[status])
    if counts[PROBLEM]:
        return tr("{counts}: fix the problems before you launch.", counts=listed)
    return tr("{counts}: nothing here keeps a launch from working.", counts=listed)


def as_json(sections: Sections, made: str) -> str:
    """The page for a program, as JSON, one line per entry of the text."""
    lines = [_entry(title, line) for title, section in sections.items() for line in section]
    numbers = {status: sum(line["status"] == status for line in lines) for status in STATUSES}
    status = worst(line["status"] for line in lines)
    return json.dumps({"made": made, "status": status, "counts": numbers, "lines": lines}, indent=2) + "\n"


def _entry(title: str, line: Line) -> dict[str, str]:
    texts = {"text": without_home(line.text), "remedy": without_home(line.remedy)}
    return {"section": title, **line._replace(**texts)._asdict()}


# ---- what a public page may say --------------------------------------------------------------------


def masked(text: str) -> str:
    """`text` with the second half of every address of the public internet hidden; private ones stay."""
    return re.sub(r"[0-9A-Fa-f:.]*[0-9A-Fa-f]", lambda match: _masked_word(match[0]), text)


def _masked_word(word: str) -> str:
    try:
        found = ipaddress.ip_address(word)
    except ValueError:
        return word
    if not found.is_global:
        return word
    if found.version == 4:
        return ".".join(word.split(".")[:2]) + ".*.*"
    return ":".join(found.exploded.split(":")[:2]) + ":*"


def without_home(text: str) -> str:
    """`text` in one line, with the user's home folder, which holds the user's name, as ~."""
    home = os.path.expanduser("~").rstrip("/")
    return one_line(re.sub(re.escape(home) + r"(?![\w.-])", "~", text) if home.startswith("/") else text)


# ---- Turns the answer of a program into text for the page.


def first_line(ended: Ended) -> str:
    """The first line that the program wrote, on stdout or else stderr; "" if it wrote nothing."""
    text = ended.stdout.strip() or ended.stderr.strip()
    return one_line(text.splitlines()[0].strip()) if text else ""


def failure(ended: Ended) -> str:
    """Why there is no good answer."""
    if ended.status in (TIMED_OUT, NOT_FOUND):
        return str(ended.stderr)
    text = ended.stderr.strip() or ended.stdout.strip()
    last = one_line(text.splitlines()[-1].strip()) if text else tr("it wrote nothing")
    return tr("{last} (exit {status})", last=last, status=ended.status)


# ---- The interface of a section of the page, and what it is made from.


class Options(Record):
    """What the user asked for, and how."""

    json: bool
    log_dir: str  # where the logs of all runs go
    hccn_conf: str  # the file of addresses where there is no hccn_tool
    shell: str  # the version of the bash that runs the script


class Facts(Row):
    """What is known once all questions have been asked."""

    options: Options
    answers: Mapping[str, Ended]
    npus: Npus


class Section(Protocol):
    TITLE: str

    def questions(self, options: Options) -> dict[str, list[str]]:
        """{key: command}; the commands of all sections run at the same time, and the answers have these keys."""

    def lines(self, facts: Facts) -> Iterable[Line]:
        """The conclusions from the answers and from files of the system."""
