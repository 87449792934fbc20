"""A finding of the check: a difference between hosts, or something that a host lacks, and how much it matters."""

from __future__ import annotations

from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Union

    Value = Union[str, int, float, None, Sequence[str]]  # of a fact; None: there is none, or no limit
    Facts = Mapping[str, Value]  # of one host, by their keys

# What a difference does to the job, the worst first.
BLOCKS, SLOWS, SURPRISES = LEVELS = ("blocks", "slows", "surprises")


class Answer(Record):
    """The answer of one host.

    facts:  its facts; failed: {collector: why it has none} of the collectors that gave up.
    links:  what came of its connections, for links.judge, which checks the form; None: nothing.
    """

    facts: Facts
    failed: Mapping[str, str] = {}
    links: Any = None


class Group(Record):
    """Hosts with a common value.

    text: what they have, for people; value: the same without a name for it, empty if that is the same.
    values: the same by the keys of the facts, for programs.
    """

    hosts: Sequence[str]
    text: str
    value: str = ""
    values: Facts = {}


class Difference(Record):
    """One thing that differs between hosts, or that hosts lack.

    key:    the name of the fact, such as ``mindspore``, or ``package:numpy``; of several, the first one.
    groups: the hosts that are named, each group with what it has.
    others: the majority, from which these differ; None if there is none, or if nothing is compared.
    remedy: what to do, as one clause; empty if the text states it.
    """

    key: str
    level: str
    groups: Sequence[Group]
    others: Group | None = None
    remedy: str = ""
