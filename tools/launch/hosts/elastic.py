"""Makes the plan of a restart after a host was lost: on the hosts that are left, or with a spare one in its place.

tools/features/elastic_restarts.py calls it.  The checks from before the launch are repeated for the new hosts.

A lost host stays out for the rest of the job, even if it answers again: its state has not been checked yet.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import count, named, one_line
from tools.launch import planned, record, run_folder
from tools.launch.hosts import network, spares
from tools.launch.planned import Plan
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")


class Loss(Record):
    """A host that the job has lost.

    attempt: the number of the attempt that lost it, from 0 on; ranks: those that it had then, none if it was spare;
    reason: why it counts as lost.
    """

    host: str
    attempt: int
    ranks: list[int]
    reason: str


class Past(Record):
    """What launch.json states about the job.

    ranks: (number, host) in the last plan; sizes: how many ranks each plan had, each number once; trainer, restart:
    the commands; spares: the hosts that were spare at the start.
    """

    ranks: list[tuple[int, str]]
    losses: list[Loss]
    sizes: list[int]
    trainer: list[str]
    restart: list[str]
    spares: list[str]


def begin(request: Request, make: Callable[[Request], Plan]) -> tuple[Sequence[str], Plan | None]:
    """(what to tell the user, the new plan); None if the plan stays as it is.

    make: tools/launch/plan.py's; the new rank table is on all hosts afterwards, and launch.json has the new plan.
    Raises Refusal: there can be no restart, and why.
    """
    try:
        return _begin(request, make)
    except Refusal as refusal:
        first, *rest = refusal.lines
        raise Refusal(
            REFUSED, tr("no restart {number}: {reason}", number=request.attempt, reason=first), *rest
        ) from refusal


def _begin(request: Request, make: Callable[[Request], Plan]) -> tuple[Sequence[str], Plan | None]:
    document = record.read(request.run_dir)
    past = _past(request, document)
    new = _new(request, past)
    if not new:
        return (), None
    losses = [*past.losses, *new]
    document["lost_hosts"] = [loss.as_dict() for loss in losses]
    _save(request, document)  # also when there is no restart
    os.environ.pop("RESUME", None)  # the launch has found what it goes on from
    plan = make(request.replace(lost=",".join(loss.host for loss in losses), resume=None))
    _check_number(request, len(plan.ranks), losses)
    plan = plan.replace(trainer=past.trainer, restart=past.restart)  # they name what the launch has gone on from
    remarks = [*map(_out, new), *_goes_on(plan, past)]
    remarks += () if request.quiet or not plan.table else plan.table.remarks
    if len(plan.ranks) != len(past.ranks):
        from tools.launch.resume import other_sizes

        plan, more = other_sizes.checkpoints(plan, document, len(past.ranks))
        remarks += more
    plan = plan.replace(
        exports={**plan.exports, "RESUME_RANK_SIZES": ",".join(map(str, past.sizes))},
        lost=[f"{loss.host} {one_line(loss.reason)}" for loss in losses],
    )
    planned.check(plan)
    run_folder.put_again(plan, document)
    return remarks, plan


# ---- what is lost ----------------------------------------------------------------------------------


def _new(request: Request, past: Past) -> list[Loss]:
    """The hosts that are lost since the last plan: the one that the engine has named, and those that do not answer."""
    gone = {loss.host for loss in past.losses}
    ranks: dict[str, list[int]] = {}
    for rank, host in past.ranks:
        ranks.setdefault(host, []).append(rank)
    told = [name for name in spares.lost(request) if name not in gone]
    left = [name for name in dict.fromkeys([*told, *ranks, *past.spares]) if name not in gone]
    if request.engine == "srun":
        from tools.launch.engines import slurm

        reasons = {**dict.fromkeys(told, tr("srun can no longer reach it")), **slurm.lost_nodes(left)}
    else:
        reasons = _silent(request, network.others(name for name in left if name not in told))
        reasons.update(dict.fromkeys(told, tr("mpirun can no longer reach it")))
    attempt = (request.attempt or 1) - 1
    return [
        Loss(host=name, attempt=attempt, ranks=ranks.get(name, []), reason=reasons[name])
        for name in left
        if name in reasons
    ]


def _silent(request: Request, hosts: list[str]) -> dict[str, str]:
    """{host that cannot be reached over ssh: why}; all are asked at the same time."""
    from tools.launch.engines import open_mpi
    from tools.launch.hosts import host_check

    if not hosts:
        return {}
    answers = host_check.ask(request, open_mpi.installed(request).version, dict.fromkeys(hosts, "true"))
    return {name: host_check.no_answer(name, answer) for name, answer in answers.items() if answer.status}


# ---- what launch.json states -------------------------------------------------------------------------


def _past(request: Request, document: dict[str, Any]) -> Past:
    """What the document tells.  Raises Refusal: it was written by us, but it may be anybody's by now."""
    try:
        ranks = [(_fit(rank["rank"], int), _fit(rank["host"], str)) for rank in document["ranks"]]
        losses = [
            Loss(
                host=_fit(loss["host"], str),
                attempt=_fit(loss["attempt"], int),
                ranks=[_fit(rank, int) for rank in loss["ranks"]],
                reason=_fit(loss["reason"], str),
            )
            for loss in _fit(document.get("lost_hosts", []), list)
        ]
        sizes = [len(_fit(plan["ranks"], list)) for plan in _fit(document.get("earlier_plans", []), list)]
        words = {name: _words(document.get(name, [])) for name in ("trainer", "restart", "spares")}
        if not ranks or not words["trainer"]:
            raise ValueError
    except (ValueError, TypeError, KeyError) as error:
        path = one_line(record.path(request.run_dir))
        raise refused("{path} is damaged; go on with --resume", path=path) from error
    return Past(ranks=ranks, losses=losses, sizes=list(dict.fromkeys([*sizes, len(ranks)])), **words)


def _words(value: object) -> list[str]:
    return [_fit(word, str) for word in _fit(value, list)]


def _fit(value: Any, kind: type[T]) -> T:
    """`value`, which is of this type.  Raises TypeError."""
    if type(value) is not kind:
        raise TypeError
    return value


def _save(request: Request, document: dict[str, Any]) -> None:
    try:
        record.write(request.run_dir, document)
    except (OSError, ValueError) as error:
        reason = strerror(error)
        path = one_line(record.path(request.run_dir))
        raise refused("{path}: cannot be written: {reason}", path=path, reason=reason) from error


# ---- the new plan ----------------------------------------------------------------------------------


def _check_number(request: Request, ranks: int, losses: list[Loss]) -> None:
    """Raises Refusal where the user wants more ranks than are left."""
    if ranks < (request.min_ranks or 1):
        raise refused(
            "only {ranks} can still run, but --min_ranks is {least}; lost: {hosts}; repair them, or name other "
            "hosts, and continue with --resume",
            ranks=count(ranks, "rank"),
            least=request.min_ranks,
            hosts=", ".join(one_line(loss.host) for loss in losses),
        )


def _out(loss: Loss) -> str:
    host = one_line(loss.host)
    return tr(
        "{host} is excluded from this job from now on: {reason}; check it before you use it again",
        host=f"{host} ({named('rank', loss.ranks)})" if loss.ranks else host,
        reason=one_line(loss.reason),
    )


def _goes_on(plan: Plan, past: Past) -> list[str]:
    """Where the job goes on, and how many ranks it has."""
    hosts, old = list(dict.fromkeys(plan.hosts)), {host for _, host in past.ranks}
    where = tr("{ranks} on {hosts}", ranks=count(len(plan.ranks), "rank"), hosts=count(len(hosts), "host"))
    text = tr("the job continues with {where}", where=where)
    if len(plan.ranks) != len(past.ranks):
        text = tr("the job continues with {where}; it had {before}", where=where, before=count(len(past.ranks), "rank"))
    come = [one_line(name) for name in hosts if name not in old]
    return [tr("{text}; spare hosts now in use: {hosts}", text=text, hosts=", ".join(come)) if come else text]
