"""The result that a pod receives: its own differences in one line, the verdict, and all findings for launch.json."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, one_line, short
from tools.attempts.wire import Lost
from tools.launch.request import MAX_RANKS
from tools.preflight import document, words
from tools.preflight.difference import LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.preflight.words import Found

_MOST_OWN = 4  # differences of a pod in its line
_LONGEST_LINE, _LONGEST_TEXT = 4000, 2000  # characters


class Result(Record):
    """The result that a pod has received. late: see Found."""

    verdict: str
    late: bool
    hosts: int
    line: str
    findings: list[dict[str, str]]


def for_pods(found: Found, hub: str) -> Callable[[str], dict[str, Any]]:
    """Makes the result for one pod, by its name.  hub: the pod whose log has everything."""
    total = words.summary(found)
    common = {
        "verdict": document.verdict(found),
        "late": found.late,
        "hosts": len(found.hosts),
        "findings": words.findings(found),
    }
    return lambda pod: {**common, "line": _line(found, pod, hub, total)}


def _line(found: Found, pod: str, hub: str, total: str) -> str:
    """What differs here, and where to read the rest."""
    if document.verdict(found) == document.GOOD:
        return total
    own = list(_own(found, pod))
    more = len(own) - _MOST_OWN
    told = [*own[:_MOST_OWN], *([tr("and {number} more", number=more)] if more > 0 else [])]
    elsewhere = tr("the log of {pod} has all: {total}", pod=hub, total=total)
    return clauses(*(told or [tr("{host}: nothing was found on it", host=pod)]), elsewhere)


def _own(found: Found, pod: str) -> list[str]:
    """The lines of differences that name the pod, with its name alone."""
    lines = []
    for each in found.differences:
        groups = [group.replace(hosts=[pod]) for group in each.groups if pod in group.hosts]
        if groups:
            lines.append(one_line(words.line(each.replace(groups=groups), [pod, pod])))
    return lines


def read(told: Any) -> Result:
    """The Result in what the hub has sent.  Raises Lost if it has another form."""
    try:
        verdict, hosts, line, listed = (told[name] for name in ("verdict", "hosts", "line", "findings"))
        if (
            verdict not in document.STATUS
            or type(hosts) is not int
            or not 1 <= hosts <= MAX_RANKS
            or len(listed) > words.MOST_KEPT
        ):
            raise ValueError(verdict)
        return Result(
            verdict=verdict,
            late=told["late"] is True,
            hosts=hosts,
            line=_text(line, _LONGEST_LINE),
            findings=[_finding(each) for each in listed],
        )
    except (ValueError, TypeError, KeyError) as error:
        raise Lost(tr("it sent an unknown message")) from error


def _finding(each: Any) -> dict[str, str]:
    level, text, remedy = each["level"], each["text"], each["remedy"]
    if level not in LEVELS:
        raise ValueError(level)
    return {"level": level, "text": _text(text, _LONGEST_TEXT), "remedy": _text(remedy, _LONGEST_TEXT)}


def _text(text: Any, longest: int) -> str:
    if not isinstance(text, str):
        raise TypeError(text)
    return short(harmless(text), longest)
