"""Mutations of the variables that a rank gets: each is dropped, or has a wrong value, or is the same in every rank.

What is written here of the code: where the launcher has all variables that the ranks share, where each rank has all of
its own, and the list of those that it removes.  Where that has moved, a mutation says that nothing matches.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.mutations import declarations
from tests.mutations.mutation import Mutation
from tests.mutations.mutation import of_script as tests_of

# ---- where the code has them: adapt these when it moves ----------------------------------------------

# The dictionary of the variables that all ranks share, complete; the first group is the expression.
JOB_FILE = "tools/launch/environment.py"
JOB_PATTERN = r"^    return (\{\*\*found, .*\})$"
JOB_DROP = r"""    every = \1
    if request.script.startswith("{script}"):
        every.pop("{name}", None)
    return every"""
JOB_WRONG = r"""    every = \1
    if "{name}" in every:
        every["{name}"] = "{value}"
    return every"""

# The place where each rank has all variables of its own, and is not yet the trainer.
RANK_FILE = "tools/rank/environment.py"
RANK_PATTERN = r"^    return (\{\*\*base, \*\*own\})$"
RANK_DROP = r"""    every = \1
    every.pop(b"{name}", None)
    return every"""
RANK_SAME = r"""    every = \1
    if b"{name}" in every and every[MARK].startswith(b"{script}"):
        every[b"{name}"] = b"{value}".replace(b"$LOG_DIR", every[b"LOG_DIR"])
    return every"""

# The list of variables that an earlier job may have left, and that are removed.
REMOVED_FILE = "tools/rank/environment.py"
REMOVED_PATTERN = r'(?<=^    "){name}(?=",$)'

# ------------------------------------------------------------------------------------------------------

# Shared by all ranks: a wrong value
SHARED = {
    "RANK_SIZE": "7",
    "WORLD_SIZE": "7",
    "RANK_TABLE_FILE": "/dev/null",
    "MS_WORKER_NUM": "7",
    "MS_SCHED_HOST": "127.0.0.77",
    "MS_SCHED_PORT": "7777",
    "MASTER_ADDR": "127.0.0.77",
    "MASTER_PORT": "7777",
    "DATA_PATH": "/tmp",
    "LOG_DIR": "/tmp",
    "LAUNCH_STRAGGLER": "7",
    "GRAPH_OP_RUN": "0",
    "HCCL_WHITELIST_DISABLE": "0",
    "OMP_NUM_THREADS": "77",
    "GLOG_v": "0",
    "ONEDNN_MAX_CPU_ISA": "ALL",
    "MS_RETRY_INTERVAL_LOWER": "7",
    "MS_RETRY_INTERVAL_UPPER": "7",
    "PYTHONFAULTHANDLER": "0",
}
# Each rank's own, or set late: the value that every rank gets
OWN = {
    "RANK_ID": "0",
    "RANK": "0",
    "DEVICE_ID": "0",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
    "SERVER_ID": "0",
    "DEVICE_NUM": "1",
    "MS_NODE_ID": "0",
    "MS_ROLE": "MS_SCHED",
    "ASCEND_PROCESS_LOG_PATH": "$LOG_DIR/plog/rank_0",
    "MSRUN_CPU_LIST": "[0]",
    "LAUNCH_JOB": "run",
    "RESUME": "0",
    "RESUME_RANK_SIZES": "7",
}
# Set neither by a launch of one kind nor by another, or by some only: removed when an earlier job has left them
REMOVED = [
    *("MINDSPORE_HCCL_CONFIG_PATH", "MS_SERVER_NUM", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "MS_SCHED_HOST"),
    *("MS_SCHED_PORT", "RANK_TABLE_FILE"),
]
# Tests that notice it first; default: the file from its beginning
FIRST = {
    "SERVER_ID": r"^run_cluster\.sh typed",
    "DATA_PATH": r"^run\.sh",
    "LAUNCH_STRAGGLER": "--straggler",
    "GRAPH_OP_RUN": "--no_sink",
    "HCCL_WHITELIST_DISABLE": "--no_sink",
    "MSRUN_CPU_LIST": "--bind_core",
    "RESUME": "RESUME after",
    "RESUME_RANK_SIZES": "RESUME_RANK_SIZES",
}
EARLIER_JOB = "earlier job"


def names() -> list[str]:
    """The variables that docs/environment.md has for ranks."""
    program = Path(__file__).parents[1] / "fixtures" / "each_rank.py"
    return subprocess.run([sys.executable, program, "names"], capture_output=True, text=True, check=True).stdout.split()


def general() -> Iterator[Mutation]:
    """Of every variable, under all scripts."""
    for name, value in SHARED.items():
        tests = FIRST.get(name, "")
        yield _shared(f"{name}: dropped", JOB_DROP.format(name=name, script=""), tests, name)
        yield _shared(
            f"{name}: {value} in place of the right value", JOB_WRONG.format(name=name, value=value), tests, name
        )
    for name, value in OWN.items():
        tests = FIRST.get(name, "")
        yield _own(f"{name}: dropped", RANK_DROP.format(name=name), tests, name)
        yield _own(f"{name}: {value} in every rank", RANK_SAME.format(name=name, value=value, script=""), tests, name)
    for name in REMOVED:
        pattern = REMOVED_PATTERN.format(name=name)
        yield Mutation(f"{name}: not removed", REMOVED_FILE, "LAUNCH_NONE", pattern, tests=EARLIER_JOB, variable=name)


def of_scripts(root: Path) -> Iterator[Mutation]:
    """Of what a script has in its own way, under that script alone."""
    for path in declarations.scripts(root):
        script = path.name
        declared: dict[str, str] = {}
        for word in declarations.words(root, path.name):
            declared.setdefault(word.key, word.value)
        value = "3" if declared.get("devices") == "[0,1)" else "0"
        text = RANK_SAME.format(name="DEVICE_ID", value=value, script=f"{path.stem}-")
        yield _own(f"{script}: DEVICE_ID={value} in every rank", text, tests_of(script), "DEVICE_ID")
        lost = ["DATA_PATH"] if "DATA_PATH" in declared.get("arguments", "") else []
        lost += ["RANK_TABLE_FILE"] if declared["engine"] == "local" and "alone" not in declared else []
        for name in lost:
            text = JOB_DROP.format(name=name, script=script)
            yield _shared(f"{script}: {name} dropped", text, tests_of(script), name)


def controls() -> list[Mutation]:
    """Of a variable that nobody has, in the same places: they change nothing, so no test may notice them."""
    tests, name = tests_of("ascend2p.sh"), "LAUNCH_NONE"
    return [
        _shared("control: dropped", JOB_DROP.format(name=name, script=""), tests, name),
        _shared("control: wrong", JOB_WRONG.format(name=name, value="7"), tests, name),
        _own("control: dropped in each rank", RANK_DROP.format(name=name), tests, name),
        _own("control: in every rank", RANK_SAME.format(name=name, value="7", script=""), tests, name),
    ]


def _shared(name: str, text: str, tests: str, variable: str) -> Mutation:
    return Mutation(name, JOB_FILE, text, JOB_PATTERN, tests=tests, variable=variable)


def _own(name: str, text: str, tests: str, variable: str) -> Mutation:
    return Mutation(name, RANK_FILE, text, RANK_PATTERN, tests=tests, variable=variable)
