"""The programs that some ways of launching need."""

from __future__ import annotations

import os

from hccl_tools.common.language import marked, tr
from hccl_tools.machine import programs
from tools.doctor import files, page
from tools.doctor.page import ABSENT, OK, WARNING, Facts, Line, Options

TITLE = marked("Programs")


def questions(_: Options) -> dict[str, list[str]]:
    """The questions about the programs; ssh has no --version."""
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
        _plain("ssh", "ssh", facts.answers["ssh"], tr("launches on several hosts")),
        _chrt(facts.answers["chrt"]),
        _py_spy(facts.answers["py-spy"]),
    ]


def _plain(name: str, program: str, ended: programs.Ended, who: str) -> Line:
    if not programs.on_path(program):
        return Line(name, ABSENT, tr("{program} is not on PATH; needed only for {who}", program=program, who=who))
    if ended.status != 0:
        text = tr("{program} does not work: {reason}", program=program, reason=page.failure(ended))
        return Line(name, WARNING, text, tr("needed only for {who}", who=who))
    text = page.first_line(ended)
    if program == "srun" and os.environ.get("SLURM_JOB_ID", "").isdigit():
        text = tr("{version}, in job {job}", version=text, job=os.environ["SLURM_JOB_ID"])
    return Line(name, OK, text)


def _mpirun(ended: programs.Ended) -> Line:
    line = _plain("Open MPI", "mpirun", ended, "run_mpirun*.sh")
    if line.status == OK and "Open MPI" not in line.text and "OpenRTE" not in line.text:
        text = tr("another MPI: {version}", version=line.text)
        return line._replace(status=WARNING, text=text, remedy=tr("put Open MPI first on PATH"))
    return line


def _chrt(ended: programs.Ended) -> Line:
    why = tr("ranks on CPU may then take minutes to find each other on a busy machine")
    if not programs.on_path("chrt"):
        return Line("chrt", WARNING, tr("is not on PATH; {why}", why=why), tr("install util-linux"))
    if ended.status != 0:
        text = tr("cannot set the batch policy: {reason}; {why}", reason=page.failure(ended), why=why)
        return Line("chrt", WARNING, text)
    return Line("chrt", OK, tr("can set the batch policy"))


def _py_spy(ended: programs.Ended) -> Line:
    if not programs.on_path("py-spy"):
        return Line("py-spy", ABSENT, tr("is not on PATH; --hang_timeout then relies on Python's faulthandler"))
    if ended.status != 0:
        text = tr("does not work: {reason}", reason=page.failure(ended))
        return Line("py-spy", WARNING, text, tr("pip install --force-reinstall it"))
    text = page.first_line(ended)
    if os.geteuid() != 0 and (files.number("/proc/sys/kernel/yama/ptrace_scope") or 0) > 0:
        text = tr("{version}, without permission to inspect other processes", version=text)
        return Line("py-spy", WARNING, text, "sysctl -w kernel.yama.ptrace_scope=0")
    return Line("py-spy", OK, text)
