"""What srun's question to the nodes says, with a program in the place of srun."""

import os
import shlex
import subprocess
import sys

import pytest
from launching import request

from hccl_tools.hosts import elsewhere
from tools.engines.srun import Srun
from tools.launch import checks, plan
from tools.launch.engines.facts import MpirunFacts, OpenMpi, SrunFacts
from tools.launch.engines.placement import Placement
from tools.launch.hosts import host_check

SAME = f"same 1.0.0 {'a' * 64} /my/project"
OTHER = f"other 1.0.0 {'a' * 64} /opt/mindspore_launch"


@pytest.fixture
def says(tmp_path, monkeypatch):
    """says(TEXT, status=0): what srun prints and its exit code; the words that it got are then in the file `got`."""
    monkeypatch.setattr(elsewhere, "own", lambda: elsewhere.Version(number="1.0.0", digest="a" * 64))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)

    def set_(text, status=0):
        (tmp_path / "said").write_text(text)
        (tmp_path / "srun").write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" "$SLURM_NTASKS" >{tmp_path}/got\ncat {tmp_path}/said\n'
            f"echo srun: error: no >&2\nexit {status}\n"
        )
        (tmp_path / "srun").chmod(0o755)
        return tmp_path / "got"

    return set_


def line(node, answer):
    return f"0: {host_check._NODE_MARK} {node} {answer}\n"


def test_all_nodes_are_asked_in_one_step_that_is_not_that_of_sbatch(says, monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS", "16")
    got = says(line("n2", SAME) + "noise\n" + line("n1", SAME))
    assert host_check.problems_of_nodes(request(), ["n1", "n2"]) == ([], False)
    words = got.read_text().split("\n")
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--nodelist=n1,n2", "--overlap"} <= set(words)
    assert "16" not in words


def test_a_node_may_have_the_project_elsewhere(says):
    says(line("n1", SAME) + line("n2", OTHER))
    assert host_check.problems_of_nodes(request(), ["n1", "n2"]) == ([], True)


def test_nodes_without_an_answer_and_with_a_bad_one_are_told(says):
    says(line("n1", "none") + line("n2", "") + line("n3", "same x y z"), 1)
    lines, _ = host_check.problems_of_nodes(request(), ["n1", "n2", "n3", "n4", "n5"])
    assert [text.partition(":")[0] for text in lines] == ["n[4-5]", "n[2-3]", "n1"]
    assert "no answer by srun: srun: error: no (exit 1); try: srun --overlap -w n4 true" in lines[0]
    assert "does not answer there" in lines[1] and "this project is neither at" in lines[2]


def test_this_node_is_not_asked_and_a_restart_asks_nobody(says, monkeypatch):
    got = says("")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    assert host_check.problems_of_nodes(request(), ["n1"]) == ([], False)
    assert host_check.problems_of_nodes(request(attempt="1"), ["n1", "n2"]) == ([], True)
    assert not got.exists()


def test_the_question_is_one_that_a_node_s_shell_answers(monkeypatch):
    words = host_check._command(["n1"])
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    ended = subprocess.run(words[words.index("/bin/sh") :], stdout=subprocess.PIPE, text=True)
    found = elsewhere.read(host_check._told_by_nodes(ended.stdout)["n1"])
    assert found == elsewhere.Found(version=elsewhere.own(), folder=elsewhere.project.ROOT)


@pytest.mark.parametrize("engine", ["srun", "mpirun"])
@pytest.mark.parametrize("there", [False, True])
def test_the_plan_knows_whether_a_host_has_it_elsewhere(monkeypatch, engine, there):
    monkeypatch.setattr(host_check, "problems_of_nodes" if engine == "srun" else "problems", lambda *_: ([], there))
    facts = SrunFacts(nodes=["n1"], per_node=1, kill_wait=30)
    placed = Placement(ranks=[(0, 0)], world=1, hosts=["n1"], engine=facts)
    assert checks.devices(request(engine=engine, device_target="CPU"), placed, False) is there
    assert checks.devices(request(engine=engine, device_target="CPU", no_check="1"), placed, False) is False


@pytest.mark.parametrize("there", [False, True])
def test_the_plan_keeps_it_for_the_engine(monkeypatch, tmp_path, there):
    facts = MpirunFacts(mpi=OpenMpi(version="4.1.4"), ranks=1, hosts=["127.0.0.1:1"])
    placed = Placement(ranks=[(0, 0)], world=1, hosts=["127.0.0.1"], engine=facts)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "place", lambda *_: (placed, None))
    monkeypatch.setattr(checks, "devices", lambda *_: there)
    (tmp_path / "config.yaml").write_text("a: 1\n")
    (tmp_path / "train.py").write_text("print()\n")
    found = plan.make(
        request(engine="mpirun", device_target="GPU", train_script="train.py", run_dir=str(tmp_path / "run"))
    )
    assert found.engine == facts.replace(elsewhere=there)


class Planned:
    """As much of a run as Srun asks for its commands."""

    def __init__(self, elsewhere_):
        self.plan = self
        self.imports = None
        self.engine = SrunFacts(nodes=["n1"], per_node=1, kill_wait=30, elsewhere=elsewhere_)
        self.scheduler = [sys.executable, "-u", elsewhere.project.path("tools", "launch", "main.py")]
        self.cluster = self
        self.scheduler_node = "n1"


def test_agents_and_scheduler_look_for_their_file_only_where_a_host_has_it_elsewhere():
    usual, looks = (Srun.__new__(Srun) for _ in range(2))
    usual.run, looks.run = Planned(False), Planned(True)
    agent = elsewhere.project.path("tools", "rank", "agent.py")
    assert usual.agent_words() == [sys.executable, "-I", "-S", agent]
    assert looks.agent_words() == [*elsewhere.question(), sys.executable, "-I", "-S", agent]
    reach = usual.scheduler_words()[: -len(usual.run.scheduler)]
    assert looks.scheduler_words() == [*reach, *elsewhere.question(), *usual.run.scheduler]
    assert shlex.join(looks.agent_words()).count("\n") == 0
