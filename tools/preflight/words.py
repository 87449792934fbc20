"""The result as JSON (see schemas/preflight.schema.json), and as text: what stops the job, what slows it, surprises."""

from __future__ import annotations

from hccl_tools.common import colours
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED
from hccl_tools.common.words import clauses, count, one_line
from hccl_tools.hosts import node_sets
from tools.preflight.difference import BLOCKS, SLOWS, SURPRISES
from tools.preflight.trial import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.common.documents import JsonObject
    from tools.preflight.difference import Difference, Facts, Group
    from tools.preflight.trial.trial import Result

_MOST_NAMED = 8  # hosts, or sets of them, of one group
_MOST_GROUPS = 6  # of one difference
_MOST_LINES = 40  # differences of one level
MOST_KEPT = 40  # differences in launch.json
_STYLES = {BLOCKS: colours.FAILURE, SLOWS: colours.CAUTION, SURPRISES: colours.FACT}
GOOD, DIFFERS, STOPS = "good", "differs", "blocks"
STATUS = {GOOD: 0, DIFFERS: 1, STOPS: REFUSED}  # exit codes


class Found(Record):
    """The findings of the check.

    hosts:       all that were asked, in their order.
    differences: the worst first.
    silent:      the hosts without an answer; lines: why, for people.
    facts:       {host: its facts} of those with an answer.
    trial:       what a trial has measured, if there was one.
    late:        that hosts did not come in time is all that stops the job: pods may, when they start again.
    """

    hosts: Sequence[str]
    differences: Sequence[Difference]
    silent: Sequence[str] = ()
    lines: Sequence[str] = ()
    facts: Mapping[str, Facts] = {}
    trial: Result | None = None
    late: bool = False

    @property
    def blocks(self) -> bool:
        """Whether something would stop the job."""
        return bool(self.silent or self.lines or any(each.level == BLOCKS for each in self.differences))


def page(found: Found, colour: bool) -> str:
    """The text for a person; colour: whether to use it."""
    blocks: list[str] = []
    for level, title in titles().items():
        lines = list(_of_level(found, level))
        if lines:
            blocks += [colours.shown(title, _STYLES[level], colour), *lines]
    blocks += map(one_line, report.lines(found.trial) if found.trial else ())
    return "\n".join([*blocks, colours.shown(summary(found), colours.HEAD, colour), ""])


def titles() -> dict[str, str]:
    """{level: the heading of its findings}"""
    return {BLOCKS: tr("This stops the job:"), SLOWS: tr("This slows it:"), SURPRISES: tr("This may surprise:")}


def _of_level(found: Found, level: str) -> Iterator[str]:
    if level == BLOCKS:
        yield from (f"  {one_line(line)}" for line in found.lines)
    of_level = [each for each in found.differences if each.level == level]
    for each in of_level[:_MOST_LINES]:
        yield f"  {one_line(line(each, found.hosts))}"
        if each.remedy:
            yield f"    -> {one_line(each.remedy)}"
    if of_level[_MOST_LINES:]:
        yield "  " + tr("and {number} more; --json has all", number=len(of_level) - _MOST_LINES)


def line(difference: Difference, hosts: Sequence[str]) -> str:
    """One difference between these hosts."""
    groups = [_group(group, hosts) for group in difference.groups[:_MOST_GROUPS]]
    more = sum(len(group.hosts) for group in difference.groups[_MOST_GROUPS:])
    if more:
        groups.append(tr("{hosts} more differ, too", hosts=count(more, "host")))
    if difference.others:
        others = {
            "hosts": count(len(difference.others.hosts), "host"),
            "text": difference.others.value or difference.others.text,
        }
        groups.append(tr("the other {hosts}: {text}", **others))
    return clauses(*groups)


def findings(found: Found) -> list[dict[str, str]]:
    """The differences for launch.json, the worst first."""
    return [
        {"level": each.level, "text": line(each, found.hosts), "remedy": each.remedy}
        for each in found.differences[:MOST_KEPT]
    ]


def _group(group: Group, hosts: Sequence[str]) -> str:
    if len(group.hosts) == len(hosts) > _MOST_NAMED:
        return tr("all {number} hosts: {text}", number=len(hosts), text=group.text)
    return tr("{hosts}: {text}", hosts=node_sets.folded(group.hosts, _MOST_NAMED), text=group.text)


def summary(found: Found) -> str:
    """The last line."""
    hosts = count(len(found.hosts), "host")
    if not found.differences and not found.silent and not found.lines:
        if len(found.hosts) == 1:
            return tr("{hosts}: nothing blocks", hosts=node_sets.folded(found.hosts, 1))
        return tr("{hosts} agree; nothing blocks", hosts=hosts)
    numbers = {level: sum(each.level == level for each in found.differences) for level in titles()}
    numbers[BLOCKS] += len(found.lines)
    said = [
        *([tr("{number} blocking", number=numbers[BLOCKS])] if numbers[BLOCKS] else []),
        *([tr("{number} slowing", number=numbers[SLOWS])] if numbers[SLOWS] else []),
        *([tr("{number} surprising", number=numbers[SURPRISES])] if numbers[SURPRISES] else []),
    ]
    total = count(sum(numbers.values()), "finding")
    text = tr("{hosts}, {total}: {numbers}", hosts=hosts, total=total, numbers=", ".join(said))
    return text if found.blocks else clauses(text, tr("nothing blocks"))


def verdict(found: Found) -> str:
    """The verdict, which the exit code also states."""
    return STOPS if found.blocks else DIFFERS if found.differences else GOOD


def document(found: Found, made: str) -> JsonObject:
    """All findings. made: when."""
    return {
        "made": made,
        "verdict": verdict(found),
        "hosts": len(found.hosts),
        "silent": list(found.silent),
        "reasons": list(found.lines),
        "differences": [_difference(each) for each in found.differences],
        **({"trial": report.document(found.trial)} if found.trial else {}),
    }


def _difference(each: Difference) -> JsonObject:
    others = each.others
    return {
        "fact": each.key,
        "level": each.level,
        "groups": [{"hosts": list(group.hosts), **_of_group(group)} for group in each.groups],
        "others": {"hosts": len(others.hosts), **_of_group(others)} if others else None,
        "remedy": each.remedy,
    }


def _of_group(group: Group) -> JsonObject:
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in group.values.items()}
    return {"text": group.text, "values": values}
