"""Programs that some ways of launching need."""

import os

from hccl_tools.machine import programs
from tools.doctor import answer, files
from tools.doctor.page import ABSENT, OK, WARNING, Line

TITLE = "Programs"

QUESTIONS = {
    "mpirun": ["mpirun", "--version"],
    "srun": ["srun", "--version"],
    "ssh": ["ssh", "-V"],  # says it on stderr
    "chrt": ["chrt", "--batch", "0", "true"],
    "py-spy": ["py-spy", "--version"],
}


def lines(answers):
    """A line a program."""
    return [
        _mpirun(answers["mpirun"]),
        _plain("Slurm", "srun", answers["srun"], "run_slurm.sh"),
        _plain("ssh", "ssh", answers["ssh"], "launches on several hosts"),
        _chrt(answers["chrt"]),
        _py_spy(answers["py-spy"]),
    ]


def _plain(name, program, ended, who):
    if not programs.on_path(program):
        return Line(name, ABSENT, f"{program} is not on PATH; needed only for {who}")
    if ended.status != 0:
        return Line(name, WARNING, f"{program} does not work: {answer.failure(ended)}", f"needed only for {who}")
    text = answer.first_line(ended)
    if program == "srun" and os.environ.get("SLURM_JOB_ID", "").isdigit():
        text += f", in job {os.environ['SLURM_JOB_ID']}"
    return Line(name, OK, text)


def _mpirun(ended):
    line = _plain("Open MPI", "mpirun", ended, "run_mpirun*.sh")
    if line.status == OK and "Open MPI" not in line.text and "OpenRTE" not in line.text:
        return line._replace(status=WARNING, text=f"another MPI: {line.text}", remedy="put Open MPI's first on PATH")
    return line


def _chrt(ended):
    why = "ranks on CPU may then take minutes to find each other on a busy machine"
    if not programs.on_path("chrt"):
        return Line("chrt", WARNING, f"is not on PATH; {why}", "install util-linux")
    if ended.status != 0:
        return Line("chrt", WARNING, f"may not set the batch policy: {answer.failure(ended)}; {why}")
    return Line("chrt", OK, "may set the batch policy")


def _py_spy(ended):
    if not programs.on_path("py-spy"):
        return Line("py-spy", ABSENT, "is not on PATH; --hang_timeout then shows what Python itself can")
    if ended.status != 0:
        return Line("py-spy", WARNING, f"does not work: {answer.failure(ended)}", "pip install --force-reinstall it")
    text = answer.first_line(ended)
    if os.geteuid() != 0 and (files.number("/proc/sys/kernel/yama/ptrace_scope") or 0) > 0:
        return Line("py-spy", WARNING, f"{text}, which may not look into ranks", "sysctl -w kernel.yama.ptrace_scope=0")
    return Line("py-spy", OK, text)
