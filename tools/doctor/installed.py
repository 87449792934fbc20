"""Programs that some ways of launching need."""

from __future__ import annotations

import os

from hccl_tools.machine import programs
from tools.doctor import answer, files
from tools.doctor.page import ABSENT, OK, WARNING, Line
from tools.doctor.section import Facts, Options

TITLE = "Programs"


def questions(_: Options) -> dict[str, list[str]]:
    """ssh has no --version."""
    return {
        "mpirun": ["mpirun", "--version"],
        "srun": ["srun", "--version"],
        "ssh": ["ssh", "-V"],
        "chrt": ["chrt", "--batch", "0", "true"],
        "py-spy": ["py-spy", "--version"],
    }


def lines(facts: Facts) -> list[Line]:
    """One line per program."""
    return [
        _mpirun(facts.answers["mpirun"]),
        _plain("Slurm", "srun", facts.answers["srun"], "run_slurm.sh"),
        _plain("ssh", "ssh", facts.answers["ssh"], "launches on several hosts"),
        _chrt(facts.answers["chrt"]),
        _py_spy(facts.answers["py-spy"]),
    ]


def _plain(name: str, program: str, ended: programs.Ended, who: str) -> Line:
    if not programs.on_path(program):
        return Line(name, ABSENT, f"{program} is not on PATH; needed only for {who}")
    if ended.status != 0:
        return Line(name, WARNING, f"{program} does not work: {answer.failure(ended)}", f"needed only for {who}")
    text = answer.first_line(ended)
    if program == "srun" and os.environ.get("SLURM_JOB_ID", "").isdigit():
        text += f", in job {os.environ['SLURM_JOB_ID']}"
    return Line(name, OK, text)


def _mpirun(ended: programs.Ended) -> Line:
    line = _plain("Open MPI", "mpirun", ended, "run_mpirun*.sh")
    if line.status == OK and "Open MPI" not in line.text and "OpenRTE" not in line.text:
        return line._replace(status=WARNING, text=f"another MPI: {line.text}", remedy="put Open MPI first on PATH")
    return line


def _chrt(ended: programs.Ended) -> Line:
    why = "ranks on CPU may then take minutes to find each other on a busy machine"
    if not programs.on_path("chrt"):
        return Line("chrt", WARNING, f"is not on PATH; {why}", "install util-linux")
    if ended.status != 0:
        return Line("chrt", WARNING, f"cannot set the batch policy: {answer.failure(ended)}; {why}")
    return Line("chrt", OK, "can set the batch policy")


def _py_spy(ended: programs.Ended) -> Line:
    if not programs.on_path("py-spy"):
        return Line("py-spy", ABSENT, "is not on PATH; --hang_timeout then relies on Python's faulthandler")
    if ended.status != 0:
        return Line("py-spy", WARNING, f"does not work: {answer.failure(ended)}", "pip install --force-reinstall it")
    text = answer.first_line(ended)
    if os.geteuid() != 0 and (files.number("/proc/sys/kernel/yama/ptrace_scope") or 0) > 0:
        text += ", without permission to inspect other processes"
        return Line("py-spy", WARNING, text, "sysctl -w kernel.yama.ptrace_scope=0")
    return Line("py-spy", OK, text)
