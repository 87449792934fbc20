"""--preflight: the quick part of the check before a launch over several hosts, which refuses what cannot work."""

from __future__ import annotations

import functools
import os

from hccl_tools.commands import boundary
from hccl_tools.common import utc
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import short_path
from hccl_tools.machine import hccn
from tools.launch.engines import facts
from tools.launch.planned import Checked
from tools.launch.programs import trainer_command
from tools.preflight import by_srun, check, kept, program_files, reach, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.planned import Plan
    from tools.preflight.pods.command import Result
    from tools.preflight.words import Found


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
    return of_found(found, lines, os.path.join(os.path.dirname(plan.run_dir), kept.NAME))


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
    before = kept.read(path)
    changed = kept.changed(before, found.facts) if before else []
    told = {
        "made": made,
        "verdict": words.verdict(found),
        "hosts": len(found.hosts),
        "findings": words.findings(found),
        "digests": {host: kept.digest(each) for host, each in found.facts.items()},
    }
    if before and changed:
        told["changed"] = {"since": before.made, "facts": changed}
    foreign = before is None and os.path.lexists(path)
    return Checked(
        told=told,
        remarks=[*lines, *([_not_ours(path)] if foreign else [])],
        changed=kept.words(before.made, changed) if before and changed else "",
        kept="" if foreign else kept.text(made, found.facts),
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
