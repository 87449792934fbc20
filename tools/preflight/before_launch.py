"""--preflight: the quick part of the check before a launch over several hosts, which refuses what cannot work.

It keeps the facts of the last job that ended well, in the folder of logs; a failed job's report names the changes.  The
file has no secrets, and only facts by which hosts are compared: the free memory of a host always changes.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re

from hccl_tools.commands import boundary
from hccl_tools.common import documents, utc
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import short_path, some
from hccl_tools.hosts import node_sets
from hccl_tools.machine import hccn
from tools.diagnosis.bundle import names
from tools.launch.engines import facts
from tools.launch.planned import Checked
from tools.launch.programs import trainer_command
from tools.preflight import by_srun, check, compare, program_files, reach, words
from tools.preflight.catalog.row import Equal
from tools.preflight.catalog.rows import ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tools.launch.planned import Plan
    from tools.preflight.difference import Facts, Value
    from tools.preflight.pods.command import Result
    from tools.preflight.words import Found

NAME = "preflight.json"
_ROWS = {row.key: row for row in ROWS if isinstance(row.rule, Equal)}
_VARIABLE = "variable:"
_SALTED = re.compile(r"<[0-9a-f]{8}>$")  # the digest of a long value is another one in each check
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MOST_CHANGES = 5  # in the report
_MOST_HOSTS = 8  # or sets of them, in one change
_MOST_KEPT = 40  # changes in launch.json
_DIGITS = 12


def look(plan: Plan) -> Checked:
    """Asks the hosts of the plan.  Raises Refusal if something would stop the job."""
    found = _found(plan)
    if found is None:
        return Checked(remarks=[_nothing_to_compare(plan)])
    if not isinstance(found, words.Found):
        return of_pod(found, _late(plan))
    lines = words.page(found, False).splitlines()
    if found.blocks:
        raise Refusal(_late(plan) if found.late else REFUSED, *lines, _nothing_started())
    return of_found(found, lines, os.path.join(os.path.dirname(plan.run_dir), NAME))


def _found(plan: Plan) -> Found | Result | None:
    """What was found; in a pod that is not the first one, what that has told; None: nobody is asked."""
    if plan.request.placement == "pod":
        from tools.preflight.pods import command  # few launches are in pods

        return command.before(plan, _job(plan), functools.partial(boundary.say, plan.request.script))
    way = _way(plan)
    return check.run(way, _job(plan)) if way else None


def _late(plan: Plan) -> int:
    """The exit code of a launch in pods that have not come in time."""
    return plan.agreement.late if plan.agreement else REFUSED


def of_pod(result: Result, late: int) -> Checked:
    """The part of another pod's result that this launch keeps.  Raises Refusal; late: see _late."""
    if result.verdict == words.STOPS:
        raise Refusal(late if result.late else REFUSED, result.line, _nothing_started())
    told = {
        "made": utc.text(),
        "verdict": result.verdict,
        "hosts": result.hosts,
        "findings": result.findings,
        "digests": {},  # those are in the launch.json of the pod that compares
    }
    return Checked(told=told, remarks=[result.line])


def _nothing_started() -> str:
    return tr("--preflight: nothing was started")


def of_found(found: Found, lines: list[str], path: str) -> Checked:
    """The part of it that the launch keeps; path: the file with the facts of the last job that ended well."""
    made = utc.text()
    before = read_kept(path)
    changed = changes_since(before, found.facts) if before else []
    told = {
        "made": made,
        "verdict": words.verdict(found),
        "hosts": len(found.hosts),
        "findings": words.findings(found),
        "digests": {host: digest(each) for host, each in found.facts.items()},
    }
    if before and changed:
        told["changed"] = {"since": before.made, "facts": changed}
    foreign = before is None and os.path.lexists(path)
    return Checked(
        told=told,
        remarks=[*lines, *([_not_ours(path)] if foreign else [])],
        changed=_changes(before.made, changed) if before and changed else "",
        kept="" if foreign else kept_text(made, found.facts),
        path=path,
    )


def _not_ours(path: str) -> str:
    """A file of that name that --preflight has not written, such as what preflight.sh --json has printed."""
    return tr(
        "note: --preflight: {path} is a different file and was not changed; move it, and the facts of this job's "
        "hosts are kept there",
        path=short_path(path),
    )


def _way(plan: Plan) -> reach.Way | None:
    """How the hosts are reached; None: this launcher has the ranks of one host."""
    request = plan.request
    logins = {name.rpartition("@")[2]: name for name in [*plan.hosts, *plan.spares]}
    if len(logins) < 2 or request.engine not in ("mpirun", "srun"):
        return None
    ranks: dict[str, int] = {}
    if request.device_target == "Ascend":
        for name in plan.hosts:
            host = name.rpartition("@")[2]
            ranks[host] = ranks.get(host, 0) + 1
    if request.engine == "srun":
        return by_srun.over_srun(list(logins), ranks)
    mpi = facts.of(facts.MpirunFacts, plan.engine).mpi
    return reach.over_ssh(logins, ranks, request.ssh, functools.partial(boundary.say, request.script), mpi.version)


def _job(plan: Plan) -> check.Job:
    """What the hosts are asked about."""
    request, port = plan.request, plan.cluster.scheduler_port
    files = (word for word in plan.trainer[1:] if word.endswith(".py") and os.path.isfile(word))
    program = next(files, "")
    own = not program or trainer_command.is_own(program)  # the versions of this project are compared anyway
    return check.Job(
        log_dir=request.log_dir or "logs",
        data=request.data_path or "",
        program=program_files.of("" if own else program, trainer_command.config_path(request) or ""),
        ports=[port] if port else [],
        hccl=plan.hccl.ranges[0][0] if plan.hccl and plan.hccl.ranges else None,
        hccn_conf=request.hccn_conf or hccn.DEFAULT_CONF,
        quick=True,
    )


def _nothing_to_compare(plan: Plan) -> str:
    if plan.request.placement == "pod" and len(plan.sizes) > 1:
        return tr(
            "note: --preflight: the launchers of these pods do not connect; before the job run in each pod: bash"
            " scripts/preflight.sh"
        )
    if plan.request.placement == "server" or plan.request.node_rank is not None:
        return tr(
            "note: --preflight: this command starts only the ranks of this host and checks no other host; before "
            "the job, type once: bash scripts/preflight.sh -H HOST,HOST"
        )
    return tr("note: --preflight: with one host there is nothing to compare; bash scripts/doctor.sh looks at it")


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


def kept_text(made: str, facts: Mapping[str, Facts]) -> str:
    """The content of the file: hosts that are alike share their facts."""
    groups = grouped((json.dumps(lasting(each)), host) for host, each in facts.items())
    document = {
        "made": made,
        "groups": [{"hosts": hosts, "facts": json.loads(each)} for each, hosts in groups.items()],
    }
    return json.dumps(document, indent=1) + "\n"


def read_kept(path: str) -> Before | None:
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


def changes_since(before: Before, facts: Mapping[str, Facts]) -> list[str]:
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


def _changes(made: str, changes: Sequence[str]) -> str:
    """The line of the report of a job that has failed."""
    return tr(
        "since the last job that ended well after --preflight ({made}): {changes}; this may have to do with the "
        "failure",
        made=made,
        changes=some(changes, _MOST_CHANGES),
    )
