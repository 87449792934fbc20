"""Asks the other hosts of a launch over ssh, all at the same time, whether they are ready.

A host is ready when ssh gets there without a password; when it has the folder of the command, the project
and the NPUs of its ranks; and when its Open MPI, Python and MindSpore are the same as here.  A difference
would end the job minutes later, or have no message at all: Open MPI starts a rank whose folder is missing
in the home folder.
"""

from __future__ import annotations

import os
import shlex
import sys

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line
from hccl_tools.machine import programs
from hccl_tools.machine.programs import Ended
from tools.launch import trainer_command
from tools.launch.placement import Placement
from tools.launch.request import Request

SECONDS = 10
_MARK = "launch-host-check"
_MINDSPORE = "from importlib import metadata as m; print(m.version('mindspore'))"


def problems(request: Request, placement: Placement, others: list[str]) -> list[str]:
    """One line per problem of the hosts `others`, in their order; empty when all are ready."""
    version, prefix = placement.engine.get("version"), placement.engine.get("prefix")
    question = questions(request, version, prefix)
    answers = ask(request, placement, dict.fromkeys(others, question))
    here = expected(version, prefix)
    # GPUs cannot be seen as files, and CPU has none.
    wanted = placement.devices_by_host() if request.device_target == "Ascend" else {}
    return [line for name in others for line in faults(name, answers[name], here, wanted.get(name, []))]


def ask(request: Request, placement: Placement, by_host: dict[str, str]) -> dict[str, Ended]:
    """{host: how its shell command ended}, for {host: the command}; over ssh as mpirun itself gets there."""
    version = placement.engine.get("version")
    old = version is None or version.startswith("4.")
    agent_name = "OMPI_MCA_plm_rsh_agent" if old else "PRTE_MCA_plm_ssh_agent"
    args_name = "OMPI_MCA_plm_rsh_args" if old else "PRTE_MCA_plm_ssh_args"
    command = request.ssh or os.environ.get(agent_name) or "ssh"
    agent = [*shlex.split(command), *shlex.split(os.environ.get(args_name, ""))]
    words = {name: [*agent, *_options(agent), name, question] for name, question in by_host.items()}
    return programs.ask_all(words, SECONDS)


def _options(agent: list[str]) -> list[str]:
    """Makes ssh ask for no password, and give up on a host that does not answer."""
    if os.path.basename(agent[0]) != "ssh":
        return []
    return ["-n", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={SECONDS - 2}"]


def questions(request: Request, version: str | None, prefix: str | None) -> str:
    """One shell command whose answers come as lines "MARK name value"."""
    mpirun = shlex.quote(os.path.join(prefix, "bin", "mpirun")) if prefix else "mpirun"
    python = shlex.quote(trainer_command.python())
    trainer = shlex.quote(os.path.abspath(request.train_script or __file__))
    said = f"$(command -v {mpirun} >/dev/null && {mpirun} --version 2>/dev/null | head -n 1)"
    return "; ".join(
        [
            f"echo {_MARK} folder $(cd {shlex.quote(os.getcwd())} 2>/dev/null && echo yes)",
            f"echo {_MARK} project $(test -r {shlex.quote(__file__)} && echo yes)",
            f"echo {_MARK} trainer $(test -r {trainer} && echo yes)",
            f'echo {_MARK} mpi "{said}"' if version else "true",
            f"echo {_MARK} devices $(cd /dev && echo davinci[0-9]*)",
            f"echo {_MARK} python $({python} --version 2>&1)",
            f"echo {_MARK} mindspore $({python} -c {shlex.quote(_MINDSPORE)} 2>/dev/null)",
        ]
    )


def expected(version: str | None, prefix: str | None) -> dict[str, str | None]:
    """What this host answers, {name: value}; "prefix": the folder of Open MPI, if it must be the same everywhere."""
    from importlib import metadata

    try:
        mindspore: str = metadata.version("mindspore")
    except metadata.PackageNotFoundError:
        mindspore = ""
    return {"mpi": version, "prefix": prefix, "python": "Python " + sys.version.split()[0], "mindspore": mindspore}


def faults(name: str, answer: Ended, here: dict[str, str | None], wanted: list[int]) -> list[str]:
    """The lines about one host; wanted: the NPUs that its ranks run on."""
    told = dict(
        (line.split(None, 2) + [""])[1:3] for line in answer.stdout.splitlines() if line.startswith(_MARK + " ")
    )
    if "mindspore" not in told:
        return [f"{name}: {_no_answer(name, answer)}"]
    lines = []
    if told["folder"] != "yes":
        lines.append(
            tr(
                "the folder {folder} is not there; ranks run where the command was typed: share it",
                folder=one_line(os.getcwd()),
            )
        )
    if told["project"] != "yes":
        lines.append(tr("this project is not at {folder}; put it there", folder=one_line(project.ROOT)))
    elif told["trainer"] != "yes":
        lines.append(tr("the trainer is not at the same path there; share it"))
    if here["mpi"] and here["mpi"] not in told["mpi"].split():
        lines.append(_other_open_mpi(here, one_line(told["mpi"])))
    if told["python"] != here["python"]:
        lines.append(
            tr(
                "{version} is needed at {path}, as here; that host has: {other}",
                version=here["python"],
                path=sys.executable,
                other=one_line(told["python"]),
            )
        )
    elif told["mindspore"] != here["mindspore"]:
        other = one_line(told["mindspore"]) or tr("none")
        lines.append(
            tr(
                "MindSpore {version} is here; that host has: {other}; install the same",
                version=here["mindspore"] or tr("none"),
                other=other,
            )
        )
    present = [int(word[7:]) for word in told.get("devices", "").split() if word[7:].isdecimal()]
    if not set(wanted) <= set(present):
        has = named("device", present) if present else tr("no NPU (no file /dev/davinci0)")
        text = tr(
            "its ranks need {wanted}, it has {present}; start fewer ranks there, or see npu-smi info",
            wanted=named("device", wanted),
            present=has,
        )
        lines.append(text)
    return [f"{name}: {line}" for line in lines]


def _other_open_mpi(here: dict[str, str | None], other: str) -> str:
    """That the host has another Open MPI, or none where this host has it."""
    if here["prefix"]:
        return tr(
            "Open MPI {version} is needed in {folder}, as here; that host has: {other}",
            version=here["mpi"],
            folder=one_line(here["prefix"]),
            other=other or tr("none there"),
        )
    return tr(
        "Open MPI {version} is needed, as here; that host has: {other}",
        version=here["mpi"],
        other=other or tr("none on the PATH that ssh's shell has"),
    )


def _no_answer(name: str, answer: Ended) -> str:
    """Why ssh did not reach the host, and what to do."""
    text = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    reason = one_line(text[-1]) if text else tr("exit {status}", status=answer.status)
    if answer.status == 124:
        return tr(
            "no answer over ssh within {seconds} s; is it up, and reached from here? Try: ssh {name} true",
            seconds=SECONDS,
            name=name,
        )
    if "Permission denied" in reason:
        return tr(
            "ssh asks for a password ({reason}); set up a key for it: ssh-copy-id {name}", reason=reason, name=name
        )
    if "Host key verification failed" in reason:
        return tr("its key is not known here; check it and accept it: ssh {name} true", name=name)
    return tr("ssh: {reason}; try: ssh {name} true", reason=reason, name=name)
