"""What the answer of another host says about its being ready; whole launches are in tests/bats/engines_hosts.bats."""

import pytest

from hccl_tools.machine.programs import Ended
from tools.launch import host_check
from tools.launch.placement import Placement

HERE = {"mpi": "4.1.4", "python": "Python 3.11.7", "mindspore": "2.10.0"}


def answer(**differs):
    said = {"folder": "yes", "project": "yes", "trainer": "yes", "mpi": "mpirun (Open MPI) 4.1.4"}
    said.update(devices="davinci[0-9]*", python="Python 3.11.7", mindspore="2.10.0", **differs)
    lines = "".join(f"launch-host-check {name} {value}\n" for name, value in said.items())
    return Ended(0, "Welcome!\n" + lines, "")


def test_a_host_that_answers_as_this_one_is_ready():
    assert host_check.faults("node1", answer(), HERE, []) == []


@pytest.mark.parametrize(
    ("files", "wanted", "line"),
    [
        ("davinci0 davinci1 davinci10", [0, 1, 10], None),
        ("davinci0 davinci10 davinci2", [0, 1, 3], "device 1,3 is not there, which has 0,2,10"),
        ("davinci[0-9]*", [0, 1], "device 0,1 is not there, where there is no /dev/davinci0"),
    ],
)
def test_npus_that_are_not_there_are_named(files, wanted, line):
    said = answer()
    said = said._replace(stdout=said.stdout.replace("davinci[0-9]*", files))
    lines = host_check.faults("node1", said, HERE, wanted)
    assert lines == ([f"node1: {line}; start fewer ranks there, or see npu-smi info"] if line else [])


def test_each_host_is_asked_for_the_devices_of_its_own_ranks():
    place = Placement([(0, 4), (1, 5), (2, 4)], ["node0", "node0", "node1"])
    assert host_check.devices("Ascend", place) == {"node0": [4, 5], "node1": [4]}
    assert host_check.devices("CPU", place) == {}
