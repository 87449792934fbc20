"""The devices of a launch as its ranks see them: in the plan, and in an agent on its host."""

import re
from types import SimpleNamespace

import pytest
from launching import request

from hccl_tools.commands import build
from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import host, visible
from tools.launch import plan
from tools.launch.devices import device_check, seen
from tools.launch.engines import msrun, open_mpi, placement
from tools.launch.engines.facts import LocalFacts
from tools.launch.hosts import all_servers
from tools.launch.pods import pod_place
from tools.rank import device

EIGHT = range(8)


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """here([4, 5], "0,1"): the NPUs of this host, and ASCEND_RT_VISIBLE_DEVICES."""

    def have(devices, text=None):
        monkeypatch.setattr(host, "nodes", lambda: list(devices))
        monkeypatch.setattr(host, "devices", lambda: list(devices))
        monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
        if text is not None:
            monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", text)

    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", *visible.WITHOUT_EFFECT):
        monkeypatch.delenv(name, raising=False)
    have([])
    return have


def devices_of(placed):
    return [device for _, device in placed.ranks]


@pytest.mark.parametrize(
    ("devices", "text", "given", "found"),
    [
        pytest.param(EIGHT, "4,5", {}, [4, 5], id="all that are visible"),
        pytest.param(EIGHT, "4,5,6,7", {"n": "2"}, [4, 5], id="the first two of them"),
        pytest.param(EIGHT, "4,5,6,7", {"devices": "[6,8)"}, [6, 7], id="--devices has physical ids"),
        pytest.param(EIGHT, "4,5,6,7", {"devices": "7,4"}, [7, 4], id="in the order of the user"),
        pytest.param([4, 5], None, {}, [4, 5], id="all of a container"),
        pytest.param([4, 5, 6], None, {"n": "2"}, [4, 5], id="the first two of a container"),
        pytest.param([4, 5, 6, 7], "2,3", {}, [6, 7], id="the variable in a container"),
        pytest.param(EIGHT, None, {"n": "2"}, [0, 1], id="nothing limits them"),
        pytest.param([], None, {"n": "2"}, [0, 1], id="nothing is known"),
        pytest.param([], None, {"devices": "4,5"}, [4, 5], id="nothing is known, and they are named"),
    ],
)
def test_the_devices_of_a_launch_without_devices_of_its_own(here, devices, text, given, found):
    here(devices, text)
    assert devices_of(placement.local(request(script_devices="", **given))) == found


@pytest.mark.parametrize(
    ("script", "devices", "text", "found"),
    [
        ("[4,8)", EIGHT, "0,1,2,3", [0, 1, 2, 3]),
        ("[4,8)", EIGHT, "2,3,4,5,6", [2, 3, 4, 5]),
        ("[4,8)", EIGHT, "4,5,6,7", [4, 5, 6, 7]),
        ("[0,2)", EIGHT, "6,7", [6, 7]),
        ("[0,2)", [4, 5], None, [4, 5]),
        ("[4,8)", range(4), None, [4, 5, 6, 7]),  # a later check says that this host has only 0 to 3
        ("[0,8)", [4, 5], None, list(EIGHT)),
    ],
)
def test_a_script_with_devices_of_its_own_takes_as_many_visible_ones(here, script, devices, text, found):
    here(devices, text)
    assert devices_of(placement.local(request(script_devices=script))) == found


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"script_devices": "[0,8)"},
            "8 ranks need as many devices, but .*=4,5 shows only devices 4,5; use scripts/ascend2p.sh",
        ),
        (
            {"script_devices": "", "n": "3"},
            "3 ranks need as many devices, .*; start that many ranks, or: unset ASCEND",
        ),
        (
            {"script_devices": "", "devices": "[0,2)"},
            "devices 0,1 cannot be used: .* only devices 4,5; choose from those",
        ),
        ({"script_devices": "", "devices": "5,6"}, "device 6 cannot be used"),
    ],
)
def test_devices_that_a_variable_hides_are_refused(here, given, fault):
    here(EIGHT, "4,5")
    with pytest.raises(Refusal, match=fault):
        placement.local(request(**given))


def test_on_cpu_no_variable_matters(here, monkeypatch):
    here(EIGHT, "nonsense")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "nonsense")
    cpu = request(device_target="CPU", script_devices="[4,8)")
    placed = placement.local(cpu)
    assert devices_of(placed) == [4, 5, 6, 7]
    assert seen.device_ids(cpu, placed.ranks) == [] and seen.remarks(cpu, placed, placed.ranks) == []
    assert seen.lockable(cpu, [1], []) == [1]


def test_gpus_are_counted_and_locked_by_their_own_numbers(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    gpu = request(device_target="GPU", script_devices="", engine="mpirun")
    placed = placement.any_number(gpu)
    assert devices_of(placed) == [3, 1]
    assert seen.device_ids(gpu, placed.ranks) == [0, 1] and seen.lockable(gpu, [3, 1], []) == [3, 1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1,MIG-2")
    assert devices_of(placement.any_number(gpu)) == [0] and seen.lockable(gpu, [0], []) == []
    with pytest.raises(Refusal, match="2 ranks need as many devices"):
        placement.any_number(gpu.replace(n=2))


def test_a_launch_of_slurm_locks_devices_only_on_a_node_of_its_own(monkeypatch):
    slurm = request(engine="srun")
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    assert seen.lockable(slurm, [0, 1], ["n0", "n1"]) == []  # salloc, on a host for logins
    monkeypatch.setenv("SLURMD_NODENAME", "n0")
    assert seen.lockable(slurm, [0, 1], ["n0", "n1"]) == [0, 1]
    assert seen.lockable(request(engine="mpirun"), [0, 1], ["n1"]) == [0, 1]


@pytest.mark.parametrize(
    ("text", "ranks"), [(None, 8), ("4,5", 2)], ids=["nothing says how many", "the variable shows two"]
)
def test_mpirun_and_msrun_start_a_rank_for_each_visible_device(here, monkeypatch, text, ranks):
    here(EIGHT, text)
    assert [host[:2] for host in open_mpi.all_hosts(request(engine="mpirun"))[0]] == [("localhost", ranks)]
    monkeypatch.setattr(msrun, "master_address", lambda *_: ("127.0.0.1", True))
    placed = msrun.place(request(engine="msrun", script_devices=""))
    assert len(placed.ranks) == ranks and not placed.engine.named
    assert msrun.place(request(engine="msrun", script_devices="", worker_num="2", devices="4,5")).engine.named


def test_device_id_follows_the_order_of_the_rank_table(here):
    here(EIGHT, "4,5,6,7")
    assert plan.of_engine(request(), LocalFacts(), [(0, 5), (1, 4)]) == LocalFacts(device_ids=[1, 0])
    with pytest.raises(Refusal, match="devices 0,1 cannot be used"):
        seen.device_ids(request(), [(0, 0), (1, 1)])


@pytest.mark.parametrize(
    ("devices", "expected"),
    [([4, 5, 6, 7], [0, 1, 2, 3]), (EIGHT, []), ([0, 1], []), ([], [])],
    ids=["a container of four", "a privileged container sees all", "some are missing", "nothing is known"],
)
def test_devices_of_a_container_are_numbered_from_0(here, devices, expected):
    here(devices)
    ranks = [(8, 4), (9, 5), (10, 6), (11, 7)]
    assert seen.device_ids(request(), ranks) == expected
    assert seen.device_ids(request(device_target="CPU"), ranks) == []


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """A nvidia-smi on PATH that lists two GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'GPU 0: A\\nGPU 1: B\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_gpus_that_are_not_here_are_blamed_on_the_variable_that_names_them(nvidia_smi, monkeypatch):
    device_check.gpus([0, 1])
    with pytest.raises(Refusal, match="start fewer ranks with -n"):
        device_check.gpus([0, 1, 2])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,7")
    line = "CUDA_VISIBLE_DEVICES=0,7 names GPU 7, but this machine has 2; see: nvidia-smi -L"
    with pytest.raises(Refusal, match=re.escape(line)):
        device_check.gpus([0, 7])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")  # in a job of Slurm nvidia-smi lists only the job's GPUs
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_GPUS", "4,5")
    device_check.gpus([4, 5])


def test_without_a_variable_each_gpu_of_this_machine_gets_a_rank(nvidia_smi):
    assert devices_of(placement.any_number(request(device_target="GPU", script_devices="", engine="mpirun"))) == [0, 1]


@pytest.mark.parametrize(("text", "target"), [(None, "GPU"), ("0", "GPU"), ("", "CPU"), ("-1", "CPU")])
def test_who_hides_all_gpus_wants_the_processors(nvidia_smi, monkeypatch, text, target):
    if text is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", text)
    assert request(device_target="").device_target == target


def test_the_table_of_all_hosts_has_the_devices_that_a_variable_leaves(here):
    slots = [("a", 2), ("b", 2)]
    wanted = request(engine="mpirun", placement="servers")
    assert all_servers.build_options(wanted, slots) == ["--devices=[0,2)"]
    here(EIGHT, "4,6,7")
    assert all_servers.build_options(wanted, slots) == ["--devices=4,6"]
    assert all_servers.build_options(request(devices="6,7"), slots) == ["--devices=6,7"]
    options = build.parse_arguments(["--hostfile", "hosts"])
    assert build.forwarded(options) == ["--devices=4,6,7"]
    assert build.forwarded(build.parse_arguments(["--device_num", "[4,5)"])) == ["--devices=[4,5)"]


def test_a_pod_starts_ranks_on_the_devices_that_it_sees(here):
    pod = request(placement="pod")
    job = SimpleNamespace(devices=None)
    here([4, 5, 6, 7], "1,2")
    assert pod_place._devices(pod, job, 2) == (5, 6)
    here([4, 5])
    assert pod_place._devices(pod, job, 2) == (4, 5)


@pytest.mark.parametrize(
    ("devices", "text", "own", "ranks", "remark"),
    [
        (EIGHT, "4,5", "", [4, 5], "ASCEND_RT_VISIBLE_DEVICES=4,5: DEVICE_ID 0,1 for devices 4,5"),
        ([4, 5], None, "", [4, 5], "CANN counts the devices in /dev: DEVICE_ID 0,1 for devices 4,5"),
        (EIGHT, "0,1", "[4,6)", [0, 1], "for devices 0,1, in place of the script's devices 4,5"),
        (EIGHT, None, "", [0, 1], ""),
    ],
)
def test_what_is_said_of_the_numbers(here, devices, text, own, ranks, remark):
    here(devices, text)
    pairs = list(enumerate(ranks))
    placed = placement.Placement(ranks=pairs, world=2, engine=LocalFacts())
    lines = seen.remarks(request(script_devices=own), placed, pairs)
    assert (len(lines) == 1 and lines[0].endswith(remark)) if remark else lines == []


# ---- an agent, on its host -------------------------------------------------------------


class Agent(dict):
    """What an agent was told: devices of this host's ranks, whose they are, and its place among them."""

    def __init__(self, devices, target, local_rank=0):
        super().__init__(DEVICES=devices, TARGET=target)
        self.local_rank = local_rank


@pytest.mark.parametrize(
    ("devices", "text", "told", "found"),
    [
        pytest.param(EIGHT, "4,5", Agent("4 5", "Ascend", 1), "1", id="the launcher's host"),
        pytest.param(EIGHT, "6,7", Agent("4 5", "Ascend", 1), "1", id="Slurm gave this node other devices"),
        pytest.param(EIGHT, "6", Agent("4 5", "Ascend", 1), "0", id="Slurm gave each task one"),
        pytest.param([4, 5], None, Agent("0 1", "Ascend", 1), "1", id="a container of some devices"),
        pytest.param(EIGHT, None, Agent("0 1", "Ascend", 1), "1", id="nothing limits them"),
        pytest.param(EIGHT, None, Agent("6 7", "Ascend named", 1), "7", id="named ones"),
        pytest.param([6, 7], None, Agent("6 7", "Ascend named", 1), "1", id="named ones in a container"),
        pytest.param(EIGHT, "5,7", Agent("7 5", "Ascend named", 0), "1", id="named ones under the variable"),
        pytest.param([], None, Agent("4 5", "Ascend", 1), "5", id="nothing is known"),
        pytest.param([0, 1], None, Agent("4 5", "Ascend named", 1), "5", id="a device that is not here"),
        pytest.param(EIGHT, "nonsense", Agent("4 5", "", 1), "5", id="on CPU"),
    ],
)
def test_an_agent_finds_device_id_on_its_host(here, devices, text, told, found):
    here(devices, text)
    assert device.number(told) == found


@pytest.mark.parametrize(
    ("devices", "text", "told", "found"),
    [
        (EIGHT, "6,7", Agent("4 5", "Ascend"), [6, 7]),
        (EIGHT, "6", Agent("4 5", "Ascend"), [4, 5]),
        (EIGHT, "4,5,6", Agent("4 5", "Ascend"), [4, 5]),
        (EIGHT, "6,7", Agent("4 5", "Ascend named"), [4, 5]),
        ([], None, Agent("4 5", "Ascend"), [4, 5]),
    ],
)
def test_an_agent_finds_the_physical_devices_for_the_cores_near_them(here, devices, text, told, found):
    here(devices, text)
    assert device.physical(told) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [("4,5", Agent("6 7", "Ascend named")), ("4,5", Agent("4 5 6", "Ascend", 2)), ("4,,5", Agent("4 5", "Ascend"))],
)
def test_an_agent_refuses_a_device_that_the_variable_hides(here, monkeypatch, text, told):
    here(EIGHT, text)

    def refuse(line):
        raise SystemExit(line)

    monkeypatch.setattr(device, "refuse", refuse)
    with pytest.raises(SystemExit, match="ASCEND_RT_VISIBLE_DEVICES=4"):
        device.number(told)
