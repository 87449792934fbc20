"""The hosts of a job: those with ranks, the spare ones, and which of these replaces a lost host."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import count, one_line, some
from tools.launch.engines.placement import Placement
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")
    Hosts = list[tuple[str, T]]


def named(request: Request, hosts: Sequence[str], marked: Sequence[str] = ()) -> list[str]:
    """The spare `hosts` in their order: the last ones, by --spare, or those `marked` in the hostfile.

    Raises Refusal.
    """
    number = request.spare
    if number is None:
        if marked and len(marked) == len(hosts):
            raise misused("every host of the hostfile is spare; remove the word spare from those that must train")
        return list(marked)
    typed = f"--spare {number}"
    if marked:
        both = tr("the hostfile also has spare hosts ({hosts}); give only one of the two", hosts=_listed(marked))
        raise Refusal(USAGE, f"{typed}: {both}")
    if not request.max_restarts:
        what = tr("spare hosts are for restarts; add --max_restarts N")
        raise Refusal(USAGE, f"{typed}: {what}")
    if number >= len(hosts):
        what = tr("the job has {hosts} in all, and at least one must train", hosts=count(len(hosts), "host"))
        raise Refusal(USAGE, f"{typed}: {what}")
    return list(hosts[-number:])


def split(hosts: Hosts[T], spares: Sequence[str], lost: Sequence[str]) -> tuple[Hosts[T], Hosts[T]]:
    """(the hosts with ranks, those that stand by), when the hosts `lost` have gone, in this order.

    A spare host takes the place of the lost one, so that the ranks of all others keep their numbers.
    """
    waits = set(spares)
    standing_by = {name: (name, value) for name, value in hosts if name in waits}
    active: dict[str, tuple[str, T]] = {name: (name, value) for name, value in hosts if name not in standing_by}
    for name in lost:
        if name in standing_by:
            del standing_by[name]
        else:
            active = _replaced(active, name, standing_by)
    return list(active.values()), list(standing_by.values())


def _replaced(
    active: dict[str, tuple[str, T]], name: str, standing_by: dict[str, tuple[str, T]]
) -> dict[str, tuple[str, T]]:
    """`active` without the host `name`, whose place the first of `standing_by` takes, which is spare no more."""
    if name not in active:
        return active
    taken = standing_by.pop(next(iter(standing_by))) if standing_by else None
    places = {old: taken if old == name else host for old, host in active.items()}
    return {host[0]: host for host in places.values() if host}


def lost(request: Request) -> list[str]:
    """The hosts that this job has lost, the first one first."""
    return request.lost.split(",") if request.lost else []


def none_left() -> str:
    """The message when every host is lost."""
    return tr("no host is left")


def check(request: Request, placed: Placement) -> None:
    """Checks --min_ranks, for a job that begins as `placed`.  Raises Refusal."""
    if request.min_ranks is None or request.attempt:
        return
    typed = f"--min_ranks {request.min_ranks}"
    if not request.max_restarts:
        what = tr("the number of ranks can only drop at a restart; add --max_restarts N")
        raise Refusal(USAGE, f"{typed}: {what}")
    if request.min_ranks > placed.world:
        what = tr("the job begins with {ranks}; give at most that number", ranks=count(placed.world, "rank"))
        raise Refusal(USAGE, f"{typed}: {what}")


def remarks(request: Request, placed: Placement) -> list[str]:
    """Notes about the spare hosts."""
    if not placed.spares or request.attempt:
        return []
    hosts = _listed(list(placed.spares))
    if not request.max_restarts:
        return [tr("note: without --max_restarts no rank ever runs on the spare hosts {hosts}", hosts=hosts)]
    found = [tr("spare, in case a host is lost: {hosts}", hosts=hosts)]
    if request.engine == "srun":
        found.append(tr("note: Slurm ends the whole job with a lost node, unless sbatch or salloc had --no-kill"))
    return found


def _listed(names: Sequence[str]) -> str:
    return some([one_line(name) for name in names], 8)
