"""Builds one verdict about a job that --hang_timeout ended, for the terminal, the page and the commands.

It uses the stacks that were saved when the job hung, in the files rank_N.stack next to the logs.  Those of
the process that imports for all ranks (--import_once) are in imports.stack, after a line with the module.
"""

from __future__ import annotations

import os

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless, quote
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, named, one_line, short_path
from tools.diagnosis import stacks
from tools.diagnosis.run import logs_of
from tools.supervise import proc
from tools.supervise.members import IMPORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_MOST = 1024  # stacks that are read; of more ranks these are at even distances
_MODULE = "Import: "  # the first line of the file
_IN_KERNEL = "State: in the kernel\n"  # instead of stacks
_OURS = "forking/hook/sitecustomize.py"  # whose frames are not the module's; py-spy has only the end of a path
_MOST_BYTES = 1 << 20  # bytes of the file that are read


def tell(descriptor: int, folder: str, members: list[str]) -> None:
    """Saves the stacks, and writes where the ranks are, and the verdict, to this descriptor."""
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
        said = [*stacks.lines(folder, members), verdict(folder, [int(member.partition("=")[0]) for member in members])]
        stream.write("\n".join(said) + "\n")


def of_run(launch: dict[str, Any], folder: str) -> str:
    """The verdict about the last attempt of a run; nothing, if it did not end by a hang."""
    known = _of_launch(launch, folder)
    if known is None:
        return ""
    return of_import(os.path.join(folder, logs_of(launch["outcome"]))) or _verdict(_where(known))


def apart(launch: dict[str, Any], folder: str) -> list[int]:
    """The ranks that the verdict names, because the others waited elsewhere; none, where it names none."""
    known = _of_launch(launch, folder)
    where = _where(known) if known is not None else _Where()
    if where.held:
        return where.held if len(where.held) < len(known or {}) else []
    few = min(where.places.values(), key=len, default=[])
    return few if _are_few(few, where.places) else []


def stacks_of(launch: dict[str, Any], folder: str) -> dict[int, str]:
    """{rank: its stacks} of the last attempt of a run that a hang ended, as they were saved."""
    return _of_launch(launch, folder) or {}


def _of_launch(launch: dict[str, Any], folder: str) -> dict[int, str] | None:
    """The same, empty where a rank has none; None, if no hang ended the run."""
    outcome = launch.get("outcome")
    if not isinstance(outcome, dict) or outcome.get("stopped_by") != "hang":
        return None
    known = [row.get("rank") for row in documents.objects(launch, "ranks")]
    return _read(os.path.join(folder, logs_of(outcome)), [rank for rank in known if type(rank) is int])


def verdict(logs: str, ranks: Sequence[int], told: Mapping[int, str] | None = None) -> str:
    """The sentence: which ranks differ from the others, and where they were.

    told: where ranks are whose stacks are on other hosts.
    """
    return _verdict(_where(_read(logs, ranks), told))


class _Where(Record):
    """Where the ranks of a job were."""

    held: list[int] = []  # did not run
    places: dict[str, list[int]] = {}
    silent: list[int] = []  # no place is known


def _where(found: Mapping[int, str], told: Mapping[int, str] | None = None) -> _Where:
    nowhere = stacks.place("")
    places: dict[str, list[int]] = {}
    silent = []
    for rank, stack in found.items():
        place = stacks.place(stack) if stack else (told or {}).get(rank)
        if place and place != nowhere:
            places.setdefault(place, []).append(rank)
        else:
            silent.append(rank)
    return _Where(held=[rank for rank, stack in found.items() if stacks.is_held(stack)], places=places, silent=silent)


def _verdict(where: _Where) -> str:
    if where.held:
        return tr(
            "the job hung: {ranks} did not run, stopped by SIGSTOP or a debugger", ranks=named("rank", where.held)
        )
    if not where.places:
        return tr("the job hung: no rank wrote to its log, and no stack is known")
    said, silent = _of_places(where.places, bool(where.silent)), where.silent
    return clauses(said, tr("no stack is known for {ranks}", ranks=named("rank", silent))) if silent else said


def _are_few(few: Sequence[int], places: Mapping[str, list[int]]) -> bool:
    """Whether the ranks at one place are less than half of all."""
    return 2 * len(few) < sum(map(len, places.values()))


def _of_places(places: Mapping[str, list[int]], some: bool) -> str:
    """some: there are other ranks, of which no place is known."""
    ordered = sorted(places.items(), key=lambda pair: len(pair[1]))
    where, few = ordered[0]
    if len(ordered) == 1 and some:
        return tr("the job hung with {ranks} {place}", ranks=named("rank", few), place=one_line(where))
    if len(ordered) == 1 and len(few) == 1:
        return tr("the job hung: its only rank was {place}", place=one_line(where))
    if len(ordered) == 1:
        return tr("the job hung: all ranks were {place}", place=one_line(where))
    if _are_few(few, places):
        most, who = one_line(ordered[-1][0]), named("rank", few)
        return tr(
            "the job hung: most ranks were {most}, but {ranks} {place}", most=most, ranks=who, place=one_line(where)
        )
    return tr("the job hung: the ranks were at {number} places, see rank_N.stack", number=len(places))


def _read(logs: str, ranks: Sequence[int]) -> dict[int, str]:
    """{rank: its stacks}"""
    return {rank: _stack(logs, rank) for rank in ranks[:: -(-len(ranks) // _MOST) or 1]}


def _stack(logs: str, rank: int) -> str:
    try:
        with open(os.path.join(logs, f"rank_{rank}.stack"), encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def tell_import(descriptor: int, folder: str, pid: int, module: str) -> None:
    """Saves where this process is, and writes it to this descriptor; module: that it imports, or ""."""
    found = stacks.save(folder, IMPORTS, pid)
    if not found and proc.state(pid) == "D":
        found = _IN_KERNEL
    path = os.path.join(folder, f"{IMPORTS}.stack")
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"{_MODULE}{module}\n{found}")
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
        place = [tr("its stacks are in {path}", path=short_path(path))] if stacks.main_thread(found) else []
        stream.write(clauses(of_import(folder), *place) + "\n")


def of_import(folder: str) -> str:
    """The sentence about what was saved next to the logs of an attempt; nothing if that is nothing."""
    try:
        with open(os.path.join(folder, f"{IMPORTS}.stack"), encoding="utf-8", errors="replace") as file:
            first, _, found = file.read(_MOST_BYTES).partition("\n")
    except OSError:
        return ""
    if not first.startswith(_MODULE):
        return ""
    module = harmless(first[len(_MODULE) :])
    if not module:
        return tr(
            "the job hung: the process that imports for all ranks was {where}", where=one_line(_import_place(found))
        )
    said = tr(
        "the job hung: the process that imports for all ranks was importing {module}, {where}",
        module=one_line(module),
        where=one_line(_import_place(found)),
    )
    if found != _IN_KERNEL:
        return said
    command = f"python -v -c {quote(f'import {module}')}"
    return clauses(said, tr("the last line that this command prints names the file: {command}", command=command))


def _import_place(found: str) -> str:
    if found == _IN_KERNEL:
        return tr("waiting in the kernel, as for a file on NFS that does not answer")
    lines = found.splitlines(keepends=True)
    last = next((number for number, line in enumerate(lines) if _OURS in line), len(lines))
    return stacks.place("".join(lines[:last]))
