"""Suggests what a person may have meant by an unknown argument, for the end of the message about it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from hccl_tools.common.language import tr
from tools.command import table
from tools.command.line import Line, is_number

_LEAST = 3  # letters of a name that can be nearly another one
_TARGETS = ("ascend", "gpu", "cpu")
_PROGRAMS = ("python", "python3", "bash", "pytest")
_NUMBERS = ("n", "worker_num", "ntasks_per_node")  # options
_ALIKE = 0.75  # of two names, as difflib measures it
# {options that only some scripts have, and mpirun's that people know: the scripts that take them}
_ELSEWHERE = {
    "hostfile machinefile": "run_mpirun.sh, run_cluster.sh",
    "H host hosts": "run_mpirun.sh, run_mpirun_1.sh",
    "mca bind_to map_by output_filename network": "run_mpirun.sh",
    "exclude": "launch.sh, run_mpirun.sh",
    "ssh": "run_mpirun.sh, run_cluster.sh",
    "no_sink": "run_mpirun.sh",
    "spare min_ranks": "run_mpirun.sh, run_slurm.sh",
    "table_dir pod_wait": "run_pod.sh",
    "sim_level sim_rank_id": "launch.sh, run_msrun.sh",
}


def instead(line: Line, option: str) -> str:
    """The end of a message about an unknown option; empty if there is no suggestion."""
    found = _elsewhere(option) or near(table.bare(option), line.table)
    return found or (line.hint() if line.arguments else "")


def order(line: Line) -> str:
    """What is wrong where the folder of the data comes after the number of ranks or the target; otherwise empty."""
    if line.names[:1] != ("DATA_PATH",) or len(line.arguments) < 2:
        return ""
    data, after = line.arguments[:2]
    is_other = is_number(data) or data.lower() in _TARGETS
    if not is_other or os.path.isdir(data) or is_number(after) or after.lower() in _TARGETS:
        return ""
    return tr("the arguments have another order: {names}", names=" ".join(line.names))


def number(line: Line) -> str:
    """What is wrong where a number of ranks is in the place of the config; otherwise empty."""
    if line.names != ("CONFIG",) or not is_number(line.arguments[0]):
        return ""
    return _ranks(line, line.arguments[0])


def _elsewhere(option: str) -> str:
    """The scripts that take the option."""
    name = table.bare(option) if option.startswith("--") else option[1:].replace("-", "_")
    if name == "x":
        return tr("; every variable that you export reaches the ranks: write NAME=VALUE before bash")
    for names, scripts in _ELSEWHERE.items():
        if name in names.split():
            several = "," in scripts
            return tr("; {scripts} take it", scripts=scripts) if several else tr("; {script} takes it", script=scripts)
    return ""


def _ranks(line: Line, number: str) -> str:
    own = next((name for name in _NUMBERS if name in line.table), "")
    if own:
        option = table.typed(own)
        return tr(
            "write the number of ranks as {option} {number}, before the program or the config",
            option=option,
            number=number,
        )
    return tr(
        "{script} has a fixed number of ranks; for any other number: scripts/launch.sh -n {number}",
        script=line.declaration.name,
        number=number,
    )


def program(name: str) -> str:
    """The end of a message about a program that is not there."""
    from hccl_tools.common import nearly
    from hccl_tools.machine import programs

    return nearly.question(name) or near(name, filter(programs.on_path, _PROGRAMS), "")


def near(bare: str, options: Iterable[str], dashes: str = "--") -> str:
    """The end of a message about an option that is nearly one of these; empty if none is."""
    from difflib import get_close_matches  # 2 ms, for a mistake

    names = [name for name in options if len(name) > 1]
    if len(bare) < _LEAST:
        return ""
    found = [name for name in names if name.startswith(bare)] or get_close_matches(bare, names, 1, _ALIKE)
    return tr("; did you mean {option}?", option=dashes + found[0]) if found else ""
