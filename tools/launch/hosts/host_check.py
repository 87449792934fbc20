"""Checks on all hosts at the same time, over ssh or in one srun step, whether the others of a launch are ready.

A host is ready if ssh works without a password, and if it has the folder of the command and the NPUs of its ranks.  Its
Open MPI, Python, MindSpore and version of this project must be the same as here.  A difference would end the job
minutes later, or cause no message at all.  For example, Open MPI starts a rank whose folder is missing in the home
folder.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable

from hccl_tools.common.language import tr
from hccl_tools.common.words import named, one_line
from hccl_tools.hosts import elsewhere, node_sets, ssh, together
from hccl_tools.hosts.ssh import Call
from hccl_tools.machine import distributions, programs
from hccl_tools.machine.programs import Ended
from tools.launch.engines import facts
from tools.launch.engines.facts import OF_SBATCH
from tools.launch.engines.placement import Placement
from tools.launch.programs import trainer_command
from tools.launch.request import Request

SECONDS = 10  # for each of a few hosts
PATIENCE = 30  # seconds, for a restart: who does not answer then is out of the job, and a host may be busy
_MOST_SECONDS = 60  # for each of many, whose connections share the cores of this host
_MOST_DROPPED = 2  # connections; a single one may have another cause
_MOST_NAMED = 8  # hosts, or sets of them, in one line
_MARK = "launch-host-check"
_SRUN_SECONDS = 60  # for a few nodes; Slurm starts a step within one second, unless it is busy
_NODE_MARK = "launch-node-check"


def problems(request: Request, placement: Placement, others: list[str]) -> tuple[list[str], bool]:
    """(one line per problem of the hosts `others`, in their order; whether one has this project in another folder).

    There is no line when all are ready.
    """
    mpi = facts.of(facts.MpirunFacts, placement.engine).mpi
    question = questions(request, mpi.version, mpi.prefix)
    dropped: set[str] = set()
    answers = ask(request, mpi.version, dict.fromkeys(others, question), dropped.add)
    here = expected(mpi.version, mpi.prefix)
    # GPUs cannot be seen as files, and CPU has none.
    wanted = {**placement.devices_by_host(), **placement.spares} if request.device_target == "Ascend" else {}
    named_ = placement.engine.named
    lines = [line for name in others for line in faults(name, answers[name], here, wanted.get(name, []), named_)]
    told = {name: said(answers[name]) for name in others}
    more, is_elsewhere = versions(
        {name: words["project"] for name, words in told.items() if words.get("python") == here["python"]}
    )
    return lines + more or _too_many_at_once(len(dropped), len(others)), is_elsewhere


def versions(answers: dict[str, str]) -> tuple[list[str], bool]:
    """(lines about hosts without this version of the project, whether one has it in another folder).

    answers: {host: what its `project_question` said}.
    """
    found = {name: elsewhere.read(text) for name, text in answers.items()}
    silent = [name for name, place in found.items() if place is None]
    places = {name: place for name, place in found.items() if place}
    lines = [_no_python(silent)] if silent else []
    return lines + elsewhere.problems(places), any(place.elsewhere for place in places.values())


def _no_python(hosts: list[str]) -> str:
    """That the Python of the launcher, which starts the ranks' agents, does not answer on the hosts."""
    return tr(
        "{hosts}: {python}, which starts the ranks, does not answer there; install it there, as on this host",
        hosts=node_sets.folded(hosts, _MOST_NAMED),
        python=one_line(sys.executable),
    )


def _too_many_at_once(dropped: int, others: int) -> list[str]:
    """A line if sshd dropped connections of the check, all of which came in the end: mpirun has no patience."""
    if dropped < _MOST_DROPPED:
        return []
    return [
        tr(
            "an sshd dropped the first connections to {dropped} hosts; mpirun connects to all {others} at once "
            "and does not try again: {remedy}",
            dropped=dropped,
            others=others,
            remedy=ssh.more_logins(),
        )
    ]


def ask(
    request: Request,
    version: str,
    by_host: dict[str, str],
    dropped: Callable[[str], None] | None = None,
) -> dict[str, Ended]:
    """{host: how its shell command ended}, for {host: the command}; over ssh as mpirun itself gets there.

    version: of Open MPI.  dropped: as for together.run.
    """
    agent = ssh.agent(request.ssh, version)
    seconds = PATIENCE if request.attempt else SECONDS

    def call(name: str) -> Call:
        return Call(ssh.words(agent, name, by_host[name], listens=False, connect=seconds - 2))

    return together.run(by_host, call, min(_MOST_SECONDS, seconds + len(by_host) // 4), dropped=dropped)


def questions(request: Request, version: str | None, prefix: str | None) -> str:
    """One shell command whose answers come as lines "MARK name value"."""
    mpirun = shlex.quote(os.path.join(prefix, "bin", "mpirun")) if prefix else "mpirun"
    python = shlex.quote(trainer_command.python())
    named = request.train_script
    trainer = shlex.quote(os.path.abspath(named if named and not trainer_command.is_on_each_host(named) else os.curdir))
    mpi = f"$(command -v {mpirun} >/dev/null && {mpirun} --version 2>/dev/null | head -n 1)"
    return "; ".join(
        [
            f"echo {_MARK} folder $(cd {shlex.quote(os.getcwd())} 2>/dev/null && echo yes)",
            f"echo {_MARK} project $({project_question()})",
            f"echo {_MARK} trainer $(test -r {trainer} && echo yes)",
            f'echo {_MARK} mpi "{mpi}"' if version else "true",
            f"echo {_MARK} devices $(cd /dev && echo davinci[0-9]*)",
            f"echo {_MARK} python $({python} --version 2>&1)",
            f"echo {_MARK} mindspore $({python} -c {shlex.quote(distributions.question('mindspore'))} 2>/dev/null)",
        ]
    )


def project_question() -> str:
    """The shell command that `versions` takes the answer of.  A PYTHONPATH of here may lead to the project there."""
    words = elsewhere.question()
    if os.environ.get("PYTHONPATH"):
        words = ["env", f"PYTHONPATH={os.environ['PYTHONPATH']}", *words]
    return f"{shlex.join(words)} 2>/dev/null"


def expected(version: str | None, prefix: str | None) -> dict[str, str | None]:
    """The answers of this host, {name: value}; "prefix": Open MPI's folder, if it must be the same everywhere."""
    _, mindspore = distributions.Distributions().find("mindspore") or ("", "")
    return {"mpi": version, "prefix": prefix, "python": "Python " + sys.version.split()[0], "mindspore": mindspore}


def said(answer: Ended) -> dict[str, str]:
    """{name: value} from a host's answer to `questions`."""
    lines = (line.split(None, 2) for line in answer.stdout.splitlines() if line.startswith(_MARK + " "))
    return {words[1]: "".join(words[2:]) for words in lines if len(words) > 1}


def faults(
    name: str, answer: Ended, here: dict[str, str | None], wanted: list[int], by_number: bool = True
) -> list[str]:
    """The lines about one host; wanted: the NPUs that its ranks run on, or as many others, if not `by_number`."""
    told = said(answer)
    if "mindspore" not in told:
        return [f"{name}: {no_answer(name, answer)}"]
    lines = []
    if told["folder"] != "yes":
        lines.append(
            tr(
                "the folder {folder} does not exist there; ranks run in the folder where the command was typed: "
                "share it",
                folder=one_line(os.getcwd()),
            )
        )
    if told["trainer"] != "yes":
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
                "this host has MindSpore {version}; that host has: {other}; install the same version",
                version=here["mindspore"] or tr("none"),
                other=other,
            )
        )
    present = [int(word[7:]) for word in told.get("devices", "").split() if word[7:].isdecimal()]
    if not set(wanted) <= set(present) and (by_number or len(wanted) > len(present)):
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
        other=other or tr("none on the PATH of a shell that ssh starts"),
    )


def no_answer(name: str, answer: Ended) -> str:
    """Why ssh did not reach the host, and what to do."""
    text = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    reason = one_line(text[-1]) if text else tr("exit {status}", status=answer.status)
    if answer.status == 124:
        said = answer.stderr or tr("no answer within {seconds} s", seconds=SECONDS)
        return tr(
            "{said} over ssh; is that host up, and can this host reach it? Try: ssh {name} true", said=said, name=name
        )
    if "Permission denied" in reason:
        return tr(
            "ssh asks for a password ({reason}); set up a key for it: ssh-copy-id {name}", reason=reason, name=name
        )
    if "Host key verification failed" in reason:
        return tr("its key is not known here; check it and accept it: ssh {name} true", name=name)
    return tr("ssh: {reason}; try: ssh {name} true", reason=reason, name=name)


def problems_of_nodes(request: Request, others: list[str]) -> tuple[list[str], bool]:
    """(a line for each problem of several nodes, whether one has this project in another folder), by one srun step.

    On a restart no node is asked: the nodes were, and one of them may be lost.
    """
    nodes = [name for name in others if name != os.environ.get("SLURMD_NODENAME")]
    if not nodes:
        return [], False
    if request.attempt:
        return [], True
    ended = programs.ask(_command(nodes), _SRUN_SECONDS + len(nodes) // 4)
    told = _told_by_nodes(ended.stdout)
    silent = [name for name in nodes if name not in told]
    lines, elsewhere = versions({name: told[name] for name in nodes if name in told})
    return ([_no_answer_by_srun(silent, ended)] if silent else []) + lines, elsewhere


def _command(nodes: list[str]) -> list[str]:
    """The srun command that queries each node once; it does not use sbatch's numbers of tasks."""
    text = f'echo "{_NODE_MARK} $SLURMD_NODENAME" $({project_question()})'
    return [*step(nodes, "none"), "/bin/sh", "-c", text]


def step(nodes: list[str], stdin: str) -> list[str]:
    """srun and its options before a command that each node runs once; stdin: "none", or "all" get srun's."""
    return [
        *("env", *(word for name in OF_SBATCH for word in ("-u", name)), "srun"),
        *(f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--ntasks-per-node=1", f"--nodelist={','.join(nodes)}"),
        *("--wait=0", "--kill-on-bad-exit=0", "--cpu-bind=none", "--mpi=none", "--overlap", "--export=ALL"),
        *(f"--input={stdin}", "--output=all", "--error=all", "--chdir=/"),
    ]


def _told_by_nodes(stdout: str) -> dict[str, str]:
    """{node: its answer}; srun may put a label before each line."""
    found = {}
    for line in stdout.splitlines():
        _, mark, said = line.partition(_NODE_MARK + " ")
        name, _, answer = said.partition(" ")
        if mark and name:
            found[name] = answer
    return found


def _no_answer_by_srun(nodes: list[str], ended: programs.Ended) -> str:
    return tr(
        "{nodes}: no answer by srun: {reason}; try: srun --overlap -w {node} true, or leave the check out: --no_check",
        nodes=node_sets.folded(nodes, _MOST_NAMED),
        reason=one_line(programs.said(ended)),
        node=one_line(nodes[0]),
    )
