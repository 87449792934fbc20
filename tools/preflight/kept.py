"""Keeps the facts of the last job that ended well, in the folder of logs; a failed job's report names the changes.

The file has no secrets, and only facts by which hosts are compared: the free memory of a host always changes.
"""

from __future__ import annotations

import hashlib
import json
import re

from hccl_tools.common import documents
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import some
from hccl_tools.hosts import node_sets
from tools.diagnosis.bundle import names
from tools.preflight import compare
from tools.preflight.catalog.row import Equal
from tools.preflight.catalog.rows import ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tools.preflight.difference import Facts, Value

NAME = "preflight.json"
_ROWS = {row.key: row for row in ROWS if isinstance(row.rule, Equal)}
_VARIABLE = "variable:"
_SALTED = re.compile(r"<[0-9a-f]{8}>$")  # the digest of a long value is another one in each check
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MOST_CHANGES = 5  # in the report
_MOST_HOSTS = 8  # or sets of them, in one change
_MOST_KEPT = 40  # changes in launch.json
_DIGITS = 12


class Before(Record):
    """The facts of that job: when they were asked, and {host: its facts}."""

    made: str
    facts: Mapping[str, Facts]


def lasting(facts: Facts) -> dict[str, Value]:
    """The facts by which hosts are compared, without secrets, sorted."""
    return {key: facts[key] for key in sorted(facts) if _start(key) in _ROWS and not _is_private(key, facts[key])}


def _start(key: str) -> str:
    start, colon, _ = key.partition(":")
    return start + colon


def _is_private(key: str, value: Value) -> bool:
    if not key.startswith(_VARIABLE):
        return False
    return names.is_secret(key[len(_VARIABLE) :]) or bool(_SALTED.search(str(value)))


def digest(facts: Facts) -> str:
    """A digest of the lasting facts of a host."""
    return hashlib.sha256(json.dumps(lasting(facts)).encode()).hexdigest()[:_DIGITS]


def text(made: str, facts: Mapping[str, Facts]) -> str:
    """The content of the file: hosts that are alike share their facts."""
    groups = grouped((json.dumps(lasting(each)), host) for host, each in facts.items())
    document = {
        "made": made,
        "groups": [{"hosts": hosts, "facts": json.loads(each)} for each, hosts in groups.items()],
    }
    return json.dumps(document, indent=1) + "\n"


def read(path: str) -> Before | None:
    """The content of the file; None if it is missing, or not ours."""
    try:
        document = documents.read_json(path)
    except (OSError, ValueError):
        return None  # a check without an earlier one
    if not isinstance(document, dict):
        return None
    made, groups = document.get("made"), document.get("groups")
    if not isinstance(made, str) or not _DATE.fullmatch(made) or not isinstance(groups, list):
        return None
    return Before(made=made, facts={host: facts for group in groups for host, facts in _group(group)})


def _group(group: Any) -> list[tuple[str, Facts]]:
    """[(host, its facts)] of an entry of the file; empty if it has another form."""
    hosts = group.get("hosts") if isinstance(group, dict) else None
    taken = compare.taken({"facts": group.get("facts"), "failed": {}}) if isinstance(hosts, list) else None
    if hosts is None or taken is None:
        return []
    facts = lasting(taken.facts)
    return [(host, facts) for host in hosts if isinstance(host, str)]


def changed(before: Before, facts: Mapping[str, Facts]) -> list[str]:
    """The changes on hosts that were there before, the most frequent change first."""
    found: dict[tuple[str, str], list[str]] = {}
    for host, each in facts.items():
        old = before.facts.get(host)
        if old is None:
            continue
        new = lasting(each)
        for key in sorted({*old, *new}):
            if not key.startswith(_VARIABLE) and not (key in old and key in new):
                continue  # that job had another program, or nobody could look
            if (told := _change(key, old.get(key), new.get(key))) is not None:
                found.setdefault(told, []).append(host)
    ordered = sorted(found.items(), key=lambda pair: -len(pair[1]))[:_MOST_KEPT]
    return [
        tr("{hosts}: {new} instead of {old}", hosts=node_sets.folded(hosts, _MOST_HOSTS), new=new, old=old)
        for (new, old), hosts in ordered
    ]


def _change(key: str, old: Value, new: Value) -> tuple[str, str] | None:
    """(what the host has, what it had); None: the same."""
    row = _ROWS[_start(key)]
    if old == new or (_is_enough(row.rule, old) and _is_enough(row.rule, new)):
        return None
    return row.phrase(key, new), row.shown(old)


def _is_enough(rule: object, value: Value) -> bool:
    """Whether the number counts as all that are as large."""
    if not isinstance(rule, Equal) or rule.enough is None:
        return False
    return value is None or (isinstance(value, (int, float)) and value >= rule.enough)


def words(made: str, changes: Sequence[str]) -> str:
    """The line of the report of a job that has failed."""
    return tr(
        "since the last job that ended well after --preflight ({made}): {changes}; this may have to do with the "
        "failure",
        made=made,
        changes=some(changes, _MOST_CHANGES),
    )
