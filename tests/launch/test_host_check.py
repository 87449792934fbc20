"""What the answer of another host says about its being ready; whole launches are in engines_hosts.bats."""

import subprocess
import sys

import pytest
from launching import request

from hccl_tools.hosts import elsewhere
from hccl_tools.machine.programs import Ended
from tools.launch.engines.facts import LocalFacts, MpirunFacts, OpenMpi
from tools.launch.engines.placement import Placement
from tools.launch.hosts import host_check

VERSION = elsewhere.Version(number="1.0.0", digest="a" * 64)
HERE = {"mpi": "4.1.4", "prefix": None, "python": "Python 3.11.7", "mindspore": "2.10.0"}


def answer(**differs):
    said = {"folder": "yes", "trainer": "yes", "mpi": "mpirun (Open MPI) 4.1.4"}
    said.update(devices="davinci[0-9]*", python="Python 3.11.7", mindspore="2.10.0")
    said["project"] = f"same {VERSION.number} {VERSION.digest} /my/project"
    said.update(differs)
    lines = "".join(f"launch-host-check {name} {value}\n" for name, value in said.items())
    return Ended(0, "Welcome!\n" + lines, "")


def test_a_wheel_must_be_in_the_same_folder_there():
    here = {**HERE, "prefix": "/env"}
    assert host_check.faults("node1", answer(), here, []) == []
    (line,) = host_check.faults("node1", answer(mpi=""), here, [])
    assert line == "node1: Open MPI 4.1.4 is needed in /env, as here; that host has: none there"
    question = host_check.questions(request(), "4.1.4", "/env")
    assert "$(command -v /env/bin/mpirun >/dev/null && /env/bin/mpirun --version" in question


def test_hosts_whose_sshd_drops_connections_are_told_before_mpirun_begins_all_at_once(tmp_path, monkeypatch):
    """The check tries them again, mpirun would not."""
    program = tmp_path / "ssh"
    program.write_text(
        f"#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\ncd {tmp_path}\n"
        "[ -e $1 ] || { : >$1; echo kex_exchange_identification: Connection closed by remote host >&2; exit 255; }\n"
        "echo $1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(host_check, "faults", lambda *_: [])
    placed = Placement(ranks=[(0, 0)], world=1, engine=MpirunFacts(mpi=OpenMpi(version="4.1.4"), ranks=1))
    found, _ = host_check.problems(request(ssh=str(program)), placed, ["a", "b"])
    assert len(found) == 1 and found[0].startswith("an sshd dropped the first connections to 2 hosts; mpirun connects")
    assert "MaxStartups" in found[0] and "ControlMaster" in found[0]
    assert host_check.problems(request(ssh=str(program)), placed, ["a", "b"]) == ([], False)
    assert host_check.problems(request(ssh=str(program)), placed, ["c"]) == ([], False)


def asked(monkeypatch, **answers):
    """What is wrong with hosts that answer so, and whether one has the project in another folder."""
    monkeypatch.setattr(elsewhere, "own", lambda: VERSION)
    monkeypatch.setattr(host_check, "expected", lambda *_: HERE)
    monkeypatch.setattr(host_check, "ask", lambda *_: answers)
    placed = Placement(ranks=[(0, 0)], world=1, engine=MpirunFacts(mpi=OpenMpi(version="4.1.4"), ranks=1))
    return host_check.problems(request(device_target="CPU"), placed, list(answers))


def test_a_host_may_have_the_project_in_another_folder(monkeypatch):
    assert asked(monkeypatch, a=answer(), b=answer()) == ([], False)
    there = answer(project=f"other 1.0.0 {'a' * 64} /opt/site packages/mindspore_launch")
    assert asked(monkeypatch, a=answer(), b=there) == ([], True)


def test_another_version_is_one_line_for_all_hosts_that_have_it(monkeypatch):
    other = answer(project=f"same 1.0.1 {'b' * 64} /my/project")
    lines, _ = asked(monkeypatch, n1=other, n2=answer(), n3=other, n4=answer(project="none"), n5=answer(mpi=""))
    assert [line.partition(": ")[0] for line in lines] == ["n5", "n[1,3]", "n4"]
    assert "another version of this project in /my/project: 1.0.1; this host has 1.0.0; " in lines[1]
    assert "this project is neither at" in lines[2]


def test_a_host_whose_python_does_not_run_has_one_line(monkeypatch):
    (line,), _ = asked(monkeypatch, n1=answer(project="", python="sh: 1: python: not found"))
    assert line.startswith("n1: Python 3.11.7 is needed at ")
    (line,), _ = asked(monkeypatch, n1=answer(project=""), n2=answer(project="$(reboot)"))  # PYTHON is another one
    assert line.startswith(f"n[1-2]: {sys.executable}, which starts the ranks, does not answer there")
    (line,), _ = asked(monkeypatch, n1=Ended(255, "", "Host key verification failed."))
    assert "its key is not known here" in line


def test_the_question_is_one_that_a_shell_answers(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", f"/some where:{tmp_path}")
    ended = subprocess.run(["sh", "-c", host_check.questions(request(), None, None)], stdout=subprocess.PIPE, text=True)
    found = elsewhere.read(host_check.said(Ended(0, ended.stdout, ""))["project"])
    assert found == elsewhere.Found(version=elsewhere.own(), folder=elsewhere.project.ROOT)


def test_a_trainer_of_the_project_itself_need_not_be_at_its_path_there():
    for parts in (("tools", "train.py"), ("tools", "preflight", "trial", "program.py")):
        own = elsewhere.project.path(*parts)
        assert own not in host_check.questions(request(train_script=own), None, None)
    for mine in ("tools/mine.py", "configs/mine.py"):
        path = elsewhere.project.path(*mine.split("/"))
        assert path in host_check.questions(request(train_script=path), None, None)
    assert "/x/mine.py" in host_check.questions(request(train_script="/x/mine.py"), None, None)


def test_a_host_that_answers_as_this_one_is_ready():
    assert host_check.faults("node1", answer(), HERE, []) == []


@pytest.mark.parametrize(
    ("said", "part"),
    [
        (answer(folder=""), "does not exist there; ranks run in the folder where the command was typed"),
        (answer(trainer=""), "the trainer is not at the same path"),
        (answer(mpi=""), "none on the PATH of a shell that ssh starts"),
        (answer(mpi="mpirun (Open MPI) 4.1.40"), "that host has: mpirun (Open MPI) 4.1.40"),
        (answer(python="bash: python: No such file"), "Python 3.11.7 is needed"),
        (answer(mindspore="2.9.0"), "this host has MindSpore 2.10.0; that host has: 2.9.0"),
        (answer(mindspore=""), "that host has: none"),
        (Ended(255, "", "root@node1: Permission denied (publickey,password)."), "ssh-copy-id node1"),
        (Ended(255, "", "Host key verification failed."), "its key is not known here"),
        (Ended(124, "", ""), "no answer within 10 s over ssh"),
        (Ended(255, "", "ssh: connect to host node1 port 22: Connection refused"), "Connection refused"),
    ],
)
def test_what_is_wrong_with_a_host_is_one_line_that_names_it(said, part):
    lines = host_check.faults("node1", said, HERE, [])
    assert len(lines) == 1
    assert lines[0].startswith("node1: ")
    assert part in lines[0]


@pytest.mark.parametrize(
    ("files", "wanted", "line"),
    [
        ("davinci0 davinci1 davinci10", [0, 1, 10], None),
        ("davinci0 davinci10 davinci2", [0, 1, 3], "its ranks need devices 0,1,3, it has devices 0,2,10"),
        ("davinci[0-9]*", [0, 1], "its ranks need devices 0,1, it has no NPU (no file /dev/davinci0)"),
    ],
)
def test_npus_that_are_not_there_are_named(files, wanted, line):
    lines = host_check.faults("node1", answer(devices=files), HERE, wanted)
    assert lines == ([f"node1: {line}; start fewer ranks there, or see npu-smi info"] if line else [])


def test_npus_that_nobody_has_named_must_only_be_as_many():
    assert host_check.faults("node1", answer(devices="davinci4 davinci5"), HERE, [0, 1], by_number=False) == []
    (line,) = host_check.faults("node1", answer(devices="davinci4"), HERE, [0, 1], by_number=False)
    assert "its ranks need devices 0,1, it has device 4" in line


def test_each_host_is_asked_for_the_devices_of_its_own_ranks():
    place = Placement(ranks=[(0, 5), (1, 4), (2, 4)], world=3, hosts=["node0", "node0", "node1"], engine=LocalFacts())
    assert place.devices_by_host() == {"node0": [4, 5], "node1": [4]}
