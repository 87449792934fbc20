"""Writes what each rank of a start script runs, and where: a shell file in the folder of the run."""

from __future__ import annotations

import os
import shlex

from hccl_tools.common.words import one_line
from tools.launch.programs import command_words
from tools.rank import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.start_script.job import Ranks
    from tools.start_script.noting import Start

# A rank has those of the launch, or of its own shell.
_NOT_TAKEN = (*environment.CONTRACT, "PWD", "OLDPWD", "SHLVL", "_", "LINES", "COLUMNS")


def text(script: str, ranks: Ranks, caller: Mapping[str, str], *, bound: bool) -> bytes:
    """The file; `bound`: the launch gives the ranks their cores, not taskset."""
    changes = [changed(start, caller) for start in ranks.starts]
    shared = {name: value for name, value in changes[0].items() if all(each.get(name, 0) == value for each in changes)}
    lines = [f"# What {one_line(script)} starts for each rank: launch.sh --zoo has noted it.", *exports(shared)]
    lines.append('case "$RANK_ID" in')
    here = sorted(os.sched_getaffinity(0))
    for rank, (start, change) in enumerate(zip(ranks.starts, changes), ranks.first):
        own = {name: value for name, value in change.items() if name not in shared}
        cores = [] if bound or start.cores == here else ["taskset", "-c", ",".join(map(str, start.cores))]
        lines += [f"  {rank})", f"    cd {shlex.quote(start.folder)} || exit"]
        lines += [f"    {line}" for line in exports(own)]
        lines += [f'    exec {shlex.join([*cores, *words(start)])} "$@"', "    ;;"]
    return os.fsencode("\n".join([*lines, "esac", ""]))


def words(start: Start) -> list[str]:
    """The command, whose output comes at once."""
    return [start.program or start.tool, *(() if "-u" in start.words else ("-u",)), *start.words]


def changed(start: Start, caller: Mapping[str, str]) -> dict[str, str | None]:
    """{name: value} of the variables that the script has set; None: it has removed the variable."""
    kept = {name for name in (*start.environ, *caller) if environment.is_name(os.fsencode(name))} - {*_NOT_TAKEN}
    return {name: start.environ.get(name) for name in sorted(kept) if start.environ.get(name) != caller.get(name)}


def exports(values: Mapping[str, str | None]) -> list[str]:
    """The lines that set and remove variables."""
    return [
        f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}" for name, value in values.items()
    ]


def source(start: Start) -> str | None:
    """The absolute path of its Python file; None: it runs a module."""
    kind, named = command_words.of_python(start.words)
    return os.path.join(start.folder, named) if kind == "file" else None
