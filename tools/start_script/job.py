"""The job that a script's starts make up: which ranks on which devices, or why it is not a job.  See noting.py."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.quoting import quoted
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.start_script.noting import Start

MOST = 1 << 16
SHOWN = 4  # commands in a message


class Ranks(Record):
    """The ranks of this host."""

    starts: list[Start]  # in the order of the ranks
    first: int  # the number of the first one
    world: int  # ranks of the whole job
    devices: list[int]  # empty: the script does not state it
    table: str  # the rank table; empty: the script names none
    alone: bool  # the one rank joins no job


def of(script: str, starts: Sequence[Start], caller: Mapping[str, str]) -> Ranks:
    """The ranks that these starts are.  Raises Refusal where they are not one job."""
    kept = [start for start in starts if start.environ.get("MS_ROLE") != "MS_SCHED"]  # the launch has a scheduler
    if any(start.environ.get("MS_ROLE") == "MS_PSERVER" for start in kept):
        raise refusal(
            script,
            kept,
            tr(
                "starts a parameter server (MS_ROLE=MS_PSERVER), which --zoo does not support; start the "
                "script by itself"
            ),
        )
    if not kept:
        text = tr(
            "started no training: no python FILE with & or with DEVICE_ID, no mpirun and no msrun; to run it as a"
            " program in every rank, leave out --zoo"
        )
        raise refusal(script, kept, text)
    if len({start.tool in ("mpirun", "msrun") for start in kept}) > 1 or kept[0].tool in ("mpirun", "msrun"):
        raise refusal(script, kept, tr("starts more than one job; launch each by itself"))
    ranks = numbered(script, kept)
    first = ranks[0][0]
    if [rank for rank, _ in ranks] != list(range(first, first + len(ranks))):
        raise refusal(script, kept, tr("leaves out a rank: RANK_ID is {ids}", ids=", ".join(str(r) for r, _ in ranks)))
    ordered = [start for _, start in ranks]
    table = table_of(ordered[0])
    world = number(script, ordered[0], "RANK_SIZE", "MS_WORKER_NUM") or len(ordered)
    own_table = table != "" and caller.get("RANK_TABLE_FILE") != ordered[0].environ.get("RANK_TABLE_FILE")
    found = Ranks(
        starts=ordered,
        first=first,
        world=world,
        devices=devices_of(script, ordered),
        table=table,
        alone=len(ordered) == 1 and world == 1 and not own_table,
    )
    check_size(script, found)
    return found


def numbered(script: str, starts: Sequence[Start]) -> list[tuple[int, Start]]:
    """(rank, its start), sorted.  Without any RANK_ID they are in the order in which they started.  Raises Refusal."""
    found = [number(script, start, "RANK_ID", "MS_NODE_ID") for start in starts]
    if set(found) == {None}:
        devices = {number(script, start, "DEVICE_ID") for start in starts}
        sizes = {number(script, start, "RANK_SIZE", "MS_WORKER_NUM") for start in starts}
        if len(starts) == 1 or len(devices - {None}) == len(starts) or sizes == {len(starts)}:
            found = list(range(len(starts)))
    known = [(rank, start) for rank, start in zip(found, starts) if rank is not None]
    if len({rank for rank, _ in known}) < len(starts):
        text = tr(
            "starts commands that are not ranks of one job, because RANK_ID is not another number in each; launch each"
            " job by itself"
        )
        raise refusal(script, starts, text)
    return sorted(known, key=lambda pair: pair[0])


def check_size(script: str, ranks: Ranks) -> None:
    """Raises Refusal unless these are all ranks of the job, or those of a server of its rank table."""
    count = len(ranks.starts)
    if ranks.world == count and ranks.first == 0:
        return
    if ranks.world < ranks.first + count:
        text = tr(
            "starts ranks {first} to {last}, but RANK_SIZE is {world}: the ranks would wait for others, or train alone;"
            " correct RANK_SIZE there",
            first=ranks.first,
            last=ranks.first + count - 1,
            world=ranks.world,
        )
        raise refusal(script, ranks.starts, text)
    if not ranks.table:
        text = tr(
            "starts {count} of {world} ranks and names no rank table, so the others cannot be found; export"
            " RANK_TABLE_FILE, or start the training by run_msrun.sh on each host",
            count=count,
            world=ranks.world,
        )
        raise refusal(script, ranks.starts, text)


def number(script: str, start: Start, *names: str) -> int | None:
    """The number in the first of the variables that is set and not empty; None: none is.  Raises Refusal."""
    for name in names:
        text = start.environ.get(name, "")
        if text:
            found = whole_number(text, 0, MOST)
            if found is None:
                raise refusal(
                    script, [start], tr("sets {name}={value}, which is not a number", name=name, value=quoted(text))
                )
            return found
    return None


def devices_of(script: str, starts: Sequence[Start]) -> list[int]:
    """The DEVICE_ID of each; empty unless all have one."""
    found = [number(script, start, "DEVICE_ID") for start in starts]
    return [each for each in found if each is not None] if None not in found else []


def table_of(start: Start) -> str:
    """The absolute path of its rank table; empty: it has none.

    The older variable replaces the newer, as in MindSpore.  Some scripts change the folder and leave the path as typed.
    """
    named = start.environ.get("MINDSPORE_HCCL_CONFIG_PATH") or start.environ.get("RANK_TABLE_FILE")
    if not named:
        return ""
    paths = [os.path.join(start.folder, named), os.path.abspath(named)]
    return next(filter(os.path.isfile, paths), paths[0])


def refusal(script: str, starts: Sequence[Start], text: str) -> Refusal:
    """Reports what is wrong with the starts, and which they are."""
    lines = [f"    {short(command(start), 300)}" for start in starts[:SHOWN]]
    if len(starts) > SHOWN:
        lines.append(tr("    and {number} more", number=len(starts) - SHOWN))
    return Refusal(REFUSED, f"{one_line(script)} {text}" + (":" if lines else ""), *lines)


def command(start: Start) -> str:
    """The command with what makes it one rank, as a shell reads it."""
    names = ("RANK_ID", "RANK_SIZE", "DEVICE_ID")
    values = [f"{name}={quoted(start.environ[name])}" for name in names if start.environ.get(name)]
    return one_line(" ".join([*values, start.tool, *map(quoted, start.words)]))
