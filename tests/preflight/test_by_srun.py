"""Nodes of Slurm that one command asks; here a stand-in for srun starts the command for each, and mixes their lines."""

import os
import sys

import pytest

from hccl_tools.common import project
from hccl_tools.hosts import answering
from hccl_tools.machine.programs import Ended
from tools.launch.engines import slurm
from tools.preflight import by_srun

# srun: every process gets the same stdin, which stays open; lines of 1,024 bytes come out whole, longer ones in parts
SRUN = """
import subprocess, sys, os
nodes, command = sys.argv[1].split(","), sys.argv[2:]
sent = sys.stdin.buffer.readline()
pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
begun = {n: subprocess.Popen(command, env={**os.environ, "SLURMD_NODENAME": n}, **pipes) for n in nodes}
for each in begun.values():
    each.stdin.write(sent)
    each.stdin.flush()
said = [(n, line) for n, each in begun.items() for line in each.stdout.read().split(b"\\n")]
said = [(n, line[at:at + 1024]) for n, line in said for at in range(0, len(line) or 1, 1024)]
for at in range(7):  # the lines of all nodes, in another order
    for number, (n, line) in enumerate(said):
        if number % 7 == at:
            sys.stdout.buffer.write(n.encode() + b": " + line + b"\\n")
"""
ANSWERS = """
import sys
sys.path.insert(0, {root!r})
from hccl_tools.hosts import answering
sys.exit(answering.answer(lambda name, asked, tell: {{"name": name, "asked": asked, "long": asked["seed"] * 3000}}))
"""


@pytest.fixture
def probe(tmp_path, monkeypatch):
    for name, text in (("srun", SRUN), ("answers", ANSWERS.format(root=project.ROOT))):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def starter(folder, *nodes):
    return [sys.executable, str(folder / "srun.py"), ",".join(nodes)]


@pytest.mark.slow
def test_every_node_gets_its_own_question_and_answers_in_the_same_output(probe):
    questions = {name: {"seed": name, "both": [1, 2], "slots": n} for n, name in enumerate(("n1", "n2", "n3"))}
    words = [str(probe / "answers.py")]
    answers, lines, silent, ended = by_srun.run_step(
        starter(probe, *questions), "SLURMD_NODENAME", words, questions, seconds=60
    )
    assert (lines, silent, ended.status) == ([], [], 0)
    assert {each.host: each.content["asked"] for each in answers} == questions
    assert all(each.content["name"] == each.host and len(each.content["long"]) == 6000 for each in answers)


def test_a_node_that_is_not_started_is_silent_and_another_one_foreign(probe):
    questions = {name: {"seed": name} for name in ("n1", "n2")}
    found = by_srun.run_step(starter(probe, "n1", "n9"), "SLURMD_NODENAME", [str(probe / "answers.py")], questions, 60)
    assert [each.host for each in found[0]] == ["n1"] and found[2] == ["n2"]


def test_a_frame_counts_only_whole_and_with_the_number_of_this_run():
    data = os.urandom(1000).hex().encode()
    lines = answering._cut_in_pieces(data, "ab12", "node-1.x").splitlines(keepends=True)
    assert max(map(len, lines)) < 1024 and len(lines) > 4
    assert answering.joined_pieces(b"".join(reversed(lines)), "ab12") == {"node-1.x": data}
    assert answering.joined_pieces(b"".join(lines[:-1] if lines[-1].strip() else lines[:-2]), "ab12") != {
        "node-1.x": data
    }
    assert answering.joined_pieces(b"".join(line for line in lines if b" 1 " not in line), "ab12") == {}
    assert answering.joined_pieces(b"".join(lines), "ab13") == {}


class Steps:
    """Steps of srun: the nodes of each, and what came of it."""

    def __init__(self, *ends):
        self.ends, self.asked = list(ends), []

    def run(self, starter, variable, words, questions, seconds):
        self.asked.append(list(questions))
        silent, said = self.ends.pop(0)
        answers = [by_srun.Answer(host=name, content={}, lines=[]) for name in questions if name not in silent]
        return answers, [], silent, Ended(1 if silent else 0, "", said)


def asked(monkeypatch, steps, nodes, lost=()):
    monkeypatch.setattr(by_srun, "run_step", steps.run)
    monkeypatch.setattr(slurm, "lost_nodes", lambda names: {name: "Slurm says: down, power" for name in lost})
    return by_srun.over_srun(nodes, {}).ask(lambda name: {"host": name})


def test_a_node_that_stops_the_step_is_named_and_the_others_are_asked_again(monkeypatch):
    said = "srun: error: Task launch for StepId=7.0 failed on node n2: Communication connection failure\nmore"
    steps = Steps((["n1", "n2", "n3"], said), ([], ""))
    answers, lines = asked(monkeypatch, steps, ["n1", "n2", "n3"])
    assert steps.asked == [["n1", "n2", "n3"], ["n1", "n3"]]
    assert [each.host for each in answers] == ["n1", "n3"]
    assert lines == ["n2: no answer; Communication connection failure"]


def test_a_node_that_slurm_has_lost_is_not_asked_and_silence_has_its_reason(monkeypatch):
    steps = Steps((["n2"], "srun: error: n2: task 1: Killed"))
    answers, lines = asked(monkeypatch, steps, ["n1", "n2", "n3"], lost=["n3"])
    assert steps.asked == [["n1", "n2"]] and [each.host for each in answers] == ["n1"]
    assert lines == [
        "n3: no answer; Slurm says: down, power",
        "n2: no answer by srun: srun: error: n2: task 1: Killed (exit 1); try: srun --overlap -w n2 true",
    ]
