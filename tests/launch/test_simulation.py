"""--sim_level: which ranks of a job that does not run are compiled, as msrun chooses them; and names of their logs."""

import os
from types import SimpleNamespace

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from tools.launch import environment, run_folder
from tools.launch.devices import seen
from tools.launch.hosts import network
from tools.rank import environment as of_ranks


@pytest.fixture(autouse=True)
def without_variables(monkeypatch):
    for name in ("MS_SIMULATION_LEVEL", "RANK_ID", "DEVICE_NUM"):
        monkeypatch.delenv(name, raising=False)


def is_simulated(**given):
    return environment.simulated(request(**given)).placement == environment.WAY


def simulated(**given):
    return environment.simulated(request(**{"engine": "msrun", "sim_level": 1, **given}))


def ranks(**given):
    return environment.place_simulated(simulated(**given)).ranks


def refusal(**given):
    with pytest.raises(Refusal) as refused:
        environment.place_simulated(environment.simulated(request(**{"engine": "msrun", **given})))
    return refused.value.lines[0]


def test_one_rank_of_thousands_is_one_process_without_a_scheduler():
    asked = simulated(worker_num=4096, local_worker_num=8, sim_rank_id=777)
    place = environment.place_simulated(asked)
    assert (asked.engine, place.ranks, place.world) == ("local", [(777, 0)], 4096)
    found = environment.exports(asked, place, "run", None, True, None)
    assert (found["RANK_SIZE"], found["MS_WORKER_NUM"], found["MS_SIMULATION_LEVEL"]) == ("4096", "4096", "1")
    assert not {"MS_SCHED_HOST", "MS_SCHED_PORT", "MASTER_ADDR"} & set(found)
    base = {name.encode(): value.encode() for name, value in found.items()}
    own = of_ranks.of_rank(base, rank=777, local_rank=0, device=0, sizes="8x512", mark="m")
    assert own[b"RANK_ID"] == b"777" and own[b"SERVER_ID"] == b"97"
    assert b"MS_ROLE" not in own and b"MS_NODE_ID" not in own


def test_without_a_rank_those_of_this_host_are_compiled():
    assert ranks(worker_num=4) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert ranks(worker_num=4, local_worker_num=2, node_rank=1) == [(2, 0), (3, 1)]
    assert ranks(engine="local", n=2) == [(0, 0), (1, 1)]
    assert len(ranks()) == 8
    assert len(ranks(worker_num=128)) == 128


def test_of_more_than_128_the_first_one_is_compiled_and_that_is_said():
    place = environment.place_simulated(simulated(worker_num=1024, local_worker_num=256, node_rank=2))
    assert place.ranks == [(512, 0)]
    assert place.remarks == ["note: of 256 ranks only rank 512 is simulated; --sim_rank_id chooses another one"]


def test_it_is_for_ascend_unless_another_target_is_named():
    assert simulated(engine="local", device_target="", worker_num=2).device_target == "Ascend"
    assert simulated(device_target="GPU").device_target == "GPU"
    assert "for Ascend only, not for CPU" in refusal(sim_level=0, device_target="CPU")
    assert simulated(device_target="CPU", worker_num=1).device_target == "CPU"


def test_no_device_is_locked_or_looked_for_and_hccl_listens_nowhere(monkeypatch):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "6,7")
    asked = simulated(worker_num=4)
    place = environment.place_simulated(asked)
    assert seen.lockable(asked, [0, 1, 2, 3], []) == [] == seen.device_ids(asked, place.ranks)
    assert seen.remarks(asked, place, place.ranks) == []
    assert environment.hccl(asked, place, True) is None


def test_under_msrun_the_variables_say_the_same_as_the_options(monkeypatch):
    monkeypatch.setenv("MS_SIMULATION_LEVEL", "2")
    monkeypatch.setenv("RANK_ID", "5")
    assert is_simulated(engine="msrun") and not is_simulated()
    asked = environment.simulated(request(engine="msrun", worker_num=16))
    assert (asked.sim_level, asked.sim_rank_id) == (2, 5)
    asked = environment.simulated(request(engine="msrun", worker_num=16, sim_level=0, sim_rank_id=3))
    assert (asked.sim_level, asked.sim_rank_id) == (0, 3)
    monkeypatch.setenv("MS_SIMULATION_LEVEL", "high")
    assert refusal() == "MS_SIMULATION_LEVEL=high is not 0, 1, 2 or 3; unset it, or give --sim_level"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sim_rank_id": 1}, "--sim_rank_id: add the level of the simulation, 0 to 3, such as --sim_level 1"),
        (
            {"sim_level": 1, "sim_rank_id": 8},
            "--sim_rank_id 8: the job has the ranks 0 to 7; write how many ranks it has, such as --worker_num 9",
        ),
        (
            {"sim_level": 1, "worker_num": 8, "local_worker_num": 3},
            "--local_worker_num 3 does not divide the 8 ranks of the job; all hosts need the same number",
        ),
        (
            {"sim_level": 1, "worker_num": 8, "local_worker_num": 4, "node_rank": 2},
            "--node_rank 2: the job has 2 hosts; count from 0",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(given, text):
    assert refusal(**given) == text


# ---- --worker_log_name -------------------------------------------------------------------------------


def links(folder, name, monkeypatch):
    monkeypatch.setattr(network, "own_address_towards", lambda names: f"towards-{','.join(names)}")
    plan = SimpleNamespace(
        request=SimpleNamespace(worker_log_name=name),
        run_dir=str(folder),
        ranks=[(6, 0), (7, 1)],
        cluster=SimpleNamespace(scheduler_host="10.0.0.1"),
    )
    run_folder.make_worker_links(plan)
    return {link: os.readlink(folder / link) for link in sorted(os.listdir(folder))}


def test_the_logs_have_links_with_the_names_of_msrun(tmp_path, monkeypatch):
    here = os.uname().nodename
    assert links(tmp_path, "w_{ip}_{hostname}_x", monkeypatch) == {
        f"w_towards-10.0.0.1_{here}_x_6.log": "rank_6.log",
        f"w_towards-10.0.0.1_{here}_x_7.log": "rank_7.log",
    }


def test_a_name_that_the_logs_have_anyway_makes_no_links(tmp_path, monkeypatch):
    assert links(tmp_path, "rank", monkeypatch) == {}


@pytest.mark.parametrize("name", ["../w", "a/b", ".w", "-w", " w", "w\x1b[31m", "w" * 201, "w\n"])
def test_what_is_not_the_name_of_a_file_is_refused(name):
    with pytest.raises(Refusal, match="is not the name of a file; write one such as worker_{ip}_{hostname}; --log_dir"):
        run_folder.check_worker_log_name(SimpleNamespace(worker_log_name=name))
