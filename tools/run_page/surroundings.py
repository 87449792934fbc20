"""The surroundings of the ranks: environment variables, of which only differences matter, versions, and the command.

Secrets are masked as in the bundle of tools/diagnose.py.
"""

from __future__ import annotations

import contextlib
import os
import shlex

from hccl_tools.common import documents
from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Record
from hccl_tools.common.typed import starter
from tools.diagnosis.bundle import masking, names, structured
from tools.run_page.markup import whole
from tools.run_page.reading import chosen_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.run_page.reading import Rank, RunData

_MOST_FILES = 1024
_MOST_BYTES = 256 << 10  # of one file
_MOST_DIFFERENT = 200  # variables


class Variable(Record):
    """A variable whose values differ between ranks."""

    name: str
    values: list[tuple[str | None, list[int]]]  # None: not set; the most frequent value first


class Surroundings(Record):
    """The surroundings of one run."""

    masker: masking.Masker
    secrets: dict[str, str]  # {value: name}; nothing of it may be shown
    exports: dict[str, str]  # what all ranks share, by the plan
    different: list[Variable]
    own: list[str]  # variables of which each rank has a value of its own, by a rule or by chance
    of_hosts: list[str]  # variables of which each host has a value of its own
    files: int  # how many ranks' files were read
    unreadable: int  # belong to another user
    command: str | None  # to be pasted into a shell
    typed: bool  # it is the user's own command; otherwise that of one rank


def of(data: RunData) -> Surroundings:
    """Reads the environments of the ranks, which only their owner may."""
    found: dict[int, dict[str, str]] = {}
    secrets = {value: name for name, value in os.environ.items() if names.is_secret(name)}
    unreadable = 0
    for rank in chosen_of(data.ranks, data.attempts, _MOST_FILES):
        path = os.path.join(data.folder, f"rank_{rank.rank}.env")
        try:
            documents.refuse_special(path)
            with open(path, "rb") as file:
                content = file.read(_MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError:
            unreadable += 1
            continue
        found[rank.rank] = structured.variables(content)
        secrets.update({value: name for name, value in found[rank.rank].items() if names.is_secret(name)})
    with contextlib.suppress(RecursionError):
        secrets.update(structured.secrets_of_json(data.launch))
    secrets = {whole(value): name for value, name in secrets.items()}
    different, own, of_hosts = _differences(found, {rank.rank: rank for rank in data.ranks})
    command, typed = _command(data)
    return Surroundings(
        masker=masking.Masker(secrets),
        secrets=secrets,
        exports={str(name): str(value) for name, value in documents.part(data.launch, "exports").items()},
        different=different,
        own=own,
        of_hosts=of_hosts,
        files=len(found),
        unreadable=unreadable,
        command=command,
        typed=typed,
    )


def shown(name: str, value: str | None) -> str | None:
    """The value of a variable, masked by the variable's name."""
    return structured.MASK if value and names.is_secret(name) else value


def _differences(
    found: dict[int, dict[str, str]], ranks: dict[int, Rank]
) -> tuple[list[Variable], list[str], list[str]]:
    """The variables with some values, and the names of those with a value for each rank, and for each host."""
    different: list[Variable] = []
    own: list[str] = []
    of_hosts: list[str] = []
    for name in sorted({name for each in found.values() for name in each}):
        values = grouped((shown(name, each.get(name)), rank) for rank, each in found.items())
        if len(values) < 2:
            continue
        if (len(values) == len(found) and len(found) > 2) or _has_rule(values, ranks):
            own.append(name)
        elif _is_of_hosts(values, ranks):
            of_hosts.append(name)
        elif len(different) < _MOST_DIFFERENT:
            ordered = sorted(values.items(), key=lambda pair: -len(pair[1]))
            different.append(Variable(name=name, values=ordered))
    return different, own, of_hosts


def _has_rule(values: dict[str | None, list[int]], ranks: dict[int, Rank]) -> bool:
    """Whether every rank has its device's number, or its place among as many ranks as there are values."""
    numbers = len(values)
    pairs = [(rank, value) for value, each in values.items() for rank in each]
    if numbers > 2 and all(value == str(rank % numbers) for rank, value in pairs):
        return True
    return all(rank in ranks and value == str(ranks[rank].device) for rank, value in pairs)


def _is_of_hosts(values: dict[str | None, list[int]], ranks: dict[int, Rank]) -> bool:
    """Whether every host has another value.  Of two hosts one may be set up wrongly, so both are shown."""
    hosts = [{ranks[rank].host if rank in ranks else None for rank in each} for each in values.values()]
    return len(hosts) > 2 and all(len(each) == 1 for each in hosts) and len(set.union(*hosts)) == len(hosts)


def _command(data: RunData) -> tuple[str | None, bool]:
    folder, typed = documents.text(data.launch, "folder"), documents.text(data.launch, "typed")
    goes = "" if folder is None else f"cd {shlex.quote(folder)} && "
    if typed is not None:
        return f"{goes}{starter(typed.partition(' ')[0])}{typed}", True
    trainer = documents.entries(data.launch, "trainer")
    return (goes + shlex.join(map(str, trainer)) if trainer else None), False
