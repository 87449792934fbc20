"""Which ranks run where; whole launches are in tests/bats/engines_*.bats."""

import pytest

from hccl_tools.common.refusal import Refusal
from tools.launch import engines, host_check, placement


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to", "4.1.4"),
        ("mpirun (Open MPI) 5.0.0rc12", "5.0.0rc12"),
        ("Intel(R) MPI Library for Linux", None),
        ("", None),
    ],
)
def test_open_mpi_is_told_from_other_mpis(text, version):
    assert engines.open_mpi_version(text) == version


def test_ranks_are_placed_host_by_host_on_the_devices_of_each():
    place = placement.spread({"devices": "4,5,6,7"}, [("a", 2), ("b", 4)], 5, {})
    assert place.ranks == [(0, 4), (1, 5), (2, 4), (3, 5), (4, 6)]
    assert place.hosts == ["a", "a", "b", "b", "b"]
    assert place.engine["devices"] == "4 5 6 7"
    assert place.most_on_a_host() == 3


def test_a_host_needs_as_many_devices_as_it_has_ranks():
    with pytest.raises(Refusal, match="names 1, but a host has 2 ranks"):
        placement.spread({"devices": "0"}, [("a", 2)], 2, {})


@pytest.mark.parametrize(
    ("slurm", "each"),
    [
        ({"SLURM_TASKS_PER_NODE": "2(x2)"}, "2"),
        ({"SLURM_TASKS_PER_NODE": "8", "SLURM_NTASKS_PER_NODE": "4"}, "4"),
        ({}, "1"),
    ],
)
def test_slurms_tasks_of_a_node(monkeypatch, slurm, each):
    for name in ("SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    assert placement.tasks_per_node() == each


class Answer:
    """What a host said."""

    def __init__(self, status=0, stdout="", stderr=""):
        self.status, self.stdout, self.stderr = status, stdout, stderr


HERE = {"mpi": "4.1.4", "python": "Python 3.11.2", "mindspore": "2.10.0"}
GOOD = {
    "folder": "yes",
    "project": "yes",
    "trainer": "yes",
    "mpi": "mpirun (Open MPI) 4.1.4",
    "python": "Python 3.11.2",
    "mindspore": "2.10.0",
}


def said(**changes):
    return Answer(stdout="Welcome\n" + "".join(f"launch-host-check {k} {v}\n" for k, v in {**GOOD, **changes}.items()))


def test_a_host_like_this_one_is_ready():
    assert host_check.faults("node1", said(), HERE) == []


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (said(folder=""), "is not there; ranks run where the command was typed"),
        (said(project=""), "this project is not at"),
        (said(trainer=""), "the trainer is not at the same path"),
        (said(mpi=""), "none on the PATH that ssh's shell has"),
        (said(mpi="mpirun (Open MPI) 4.1.40"), "there it is: mpirun (Open MPI) 4.1.40"),
        (said(python="bash: python: No such file"), "Python 3.11.2 is needed"),
        (said(mindspore="2.9.0"), "MindSpore 2.10.0 is here; there it is: 2.9.0"),
        (said(mindspore=""), "there it is: none"),
        (Answer(255, "", "root@node1: Permission denied (publickey,password)."), "ssh-copy-id node1"),
        (Answer(255, "", "Host key verification failed."), "its key is not known here"),
        (Answer(124), "no answer over ssh within 10 s"),
        (Answer(255, "", "ssh: connect to host node1 port 22: Connection refused"), "Connection refused"),
    ],
)
def test_what_is_wrong_with_a_host_is_one_line_that_names_it(answer, part):
    lines = host_check.faults("node1", answer, HERE)
    assert len(lines) == 1
    assert lines[0].startswith("node1: ")
    assert part in lines[0]
