"""What the plan exports to all ranks: where they meet, and DEVICE_NUM; whole environments are in tests/scripts."""

import os
import socket

import pytest
from launching import request

from tools.launch import environment
from tools.launch.engines import ports
from tools.launch.engines.facts import Cluster, LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.programs import program_calls


@pytest.fixture
def plain(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "DEVICE_NUM", "MS_SCHED_PORT"):
        monkeypatch.delenv(name, raising=False)


def exports(given, **of_place):
    place = Placement(**{"ranks": [(0, 0), (1, 1)], "world": 2, "engine": LocalFacts(), **of_place})
    return environment.exports(request(**given), place, "run", table=None, alone=False, binding=None)


@pytest.mark.usefixtures("plain")
def test_ranks_of_a_cluster_meet_at_its_scheduler():
    found = exports({"device_target": "CPU"}, cluster=Cluster(scheduler_host="10.0.0.1", scheduler_port=20000))
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == (found["MS_SCHED_HOST"], found["MS_SCHED_PORT"])
    assert (found["MASTER_ADDR"], found["MASTER_PORT"], found["WORLD_SIZE"]) == ("10.0.0.1", "20000", "2")


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("of_place", "address"),
    [
        ({}, "127.0.0.1"),
        ({"cluster": Cluster(scheduler_host="10.0.0.1"), "hosts": ["localhost", "127.9.9.9"]}, "10.0.0.1"),
        ({"cluster": Cluster(scheduler_host="10.0.0.1"), "hosts": ["me@192.0.2.7", "localhost"]}, "192.0.2.7"),
    ],
)
def test_without_a_scheduler_ranks_meet_on_the_host_of_rank_0(of_place, address):
    found = exports({"engine": "mpirun"}, **of_place)
    assert found["MASTER_ADDR"] == address
    assert ports.fault(int(found["MASTER_PORT"])) is None
    assert "MS_SCHED_HOST" not in found


@pytest.mark.usefixtures("plain")
def test_a_port_for_the_scheduler_in_use_does_not_matter_where_no_scheduler_is_started(monkeypatch):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        monkeypatch.setenv("MS_SCHED_PORT", str(holder.getsockname()[1]))
        assert exports({})["MASTER_PORT"] != os.environ["MS_SCHED_PORT"]


@pytest.mark.usefixtures("plain")
def test_only_the_number_of_a_tutorial_is_in_the_plan(monkeypatch):
    assert "DEVICE_NUM" not in exports({})
    assert exports({"device_num": "8"})["DEVICE_NUM"] == "8"
    monkeypatch.setenv("DEVICE_NUM", "4")
    assert "DEVICE_NUM" not in exports({"device_num": "8"})


@pytest.mark.slow
@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n = int(os.environ['DEVICE_NUM'])", True),
        ("train --devices $DEVICE_NUM", True),
        ("LOCAL_DEVICE_NUM = DEVICE_NUMBER = 1", False),
        (" " * (1 << 20) + "DEVICE_NUM", False),
    ],
)
def test_a_program_that_names_the_variable_is_told(tmp_path, text, told):
    path = tmp_path / "train.py"
    path.write_text(text)
    for command in (["python", "-u", str(path)], [str(path), "words"]):
        lines = program_calls.device_num_remarks(request(device_num="8", script="ascend4p.sh"), 4, command)
        assert bool(lines) == told
    assert program_calls.device_num_remarks(request(device_num="8"), 4, ["python", "-m", "train", str(tmp_path)]) == []
