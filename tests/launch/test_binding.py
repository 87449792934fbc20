"""Which cores each rank gets, on pretended machines; whole launches are in tests/launch/binding.bats."""

import os
from types import SimpleNamespace

import pytest
from launching import request
from locking import Job, base

from hccl_tools.common import project
from hccl_tools.common.refusal import Refusal
from tools.launch.devices import binding, core_shares, device_locks
from tools.launch.devices.core_shares import CORE, NUMA
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement

__all__ = ["base"]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(["0-3", "4-7"], threads=[(0, 4)], pci={"0000:c1:00.0": 1}): a pretended /sys, its path.

    threads: the cores that are one physical core; all others are one each.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for name in ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def make(nodes, threads=(), pci=(), online=""):
        files = {"devices/system/node/online": f"0-{len(nodes) - 1}"} if nodes else {}
        files["devices/system/cpu/online"] = online
        for number, cores in enumerate(nodes):
            files[f"devices/system/node/node{number}/cpulist"] = cores
        for siblings in threads:
            for core in siblings:
                path = f"devices/system/cpu/cpu{core}/topology/thread_siblings_list"
                files[path] = ",".join(map(str, siblings))
        for address, node in dict(pci).items():
            files[f"bus/pci/devices/{address}/numa_node"] = str(node)
        for path, text in files.items():
            (tmp_path / "sys" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "sys" / path).write_text(text + "\n")
        return str(tmp_path / "sys")

    return make


@pytest.fixture
def npus(tmp_path, monkeypatch, machine):
    """npus({0: "0000:C1:00.0"}): a simulated npu-smi that says where these devices are; two on one NPU."""
    folder = tmp_path / "npus"
    folder.mkdir()
    (tmp_path / "bin" / "npu-smi").symlink_to(project.path("tests", "fixtures", "bin", "npu-smi"))
    monkeypatch.setenv("NPU_SIM", str(folder))

    def make(addresses):
        (folder / "devices").write_text(f"{len(addresses)}\n")
        for device, address in addresses.items():
            (folder / f"pci_{device}").write_text(f"{address}\n")

    return make


def cores(mode, ranks, allowed, root, taken=(), target="CPU"):
    """The cores of each of `ranks`: a number of ranks, or the devices of them."""
    devices = list(range(ranks)) if isinstance(ranks, int) else ranks
    return core_shares.of_this_host(mode, target, devices, set(allowed), set(taken), root)


# ---- on CPU ----------------------------------------------------------------------------------------


def test_ranks_get_even_shares_in_the_order_of_the_nodes(machine):
    root = machine(["0-1,4-5", "2-3,6-7"])
    assert cores(CORE, 2, range(8), root) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert cores(CORE, 3, range(8), root) == [[0, 1], [2, 4, 5], [3, 6, 7]]


def test_both_threads_of_a_physical_core_go_to_one_rank(machine):
    root = machine(["0-7"], threads=[(0, 4), (1, 5), (2, 6), (3, 7)])
    assert cores(CORE, 2, range(8), root) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert cores(CORE, 3, range(8), root) == [[0, 4], [1, 5], [2, 3, 6, 7]]


def test_threads_are_split_only_where_there_are_fewer_physical_cores_than_ranks(machine):
    root = machine(["0-3"], threads=[(0, 2), (1, 3)])
    assert cores(CORE, 4, range(4), root) == [[0], [2], [1], [3]]
    assert cores(CORE, 5, range(4), root) == [[]] * 5


def test_only_cores_that_the_launch_may_use_are_shared(machine):
    """A cgroup, taskset, or an offline core: sched_getaffinity leaves them out, though /sys has some of them."""
    root = machine(["0-7", "8-15"], threads=[(core, core + 8) for core in range(8)])
    assert cores(CORE, 2, [2, 3, 9, 12], root) == [[2, 3], [9, 12]]
    assert cores(CORE, 2, [2, 10], root) == [[2], [10]]


@pytest.mark.parametrize("nodes", [[], ["", "0-3"], ["?"]])
def test_a_machine_that_tells_nothing_or_nonsense_of_its_nodes(machine, nodes):
    root = machine(nodes)
    assert cores(CORE, 2, range(4), root) == [[0, 1], [2, 3]]
    assert cores(NUMA, 2, range(4), root) == [[0, 1, 2, 3]] * 2


def test_cores_of_other_jobs_are_left_out(machine):
    root = machine(["0-7"])
    assert cores(CORE, 2, range(8), root, taken=range(4)) == [[4, 5], [6, 7]]
    assert cores(CORE, 2, range(8), root, taken=range(7)) == [[], []]
    assert cores(NUMA, 2, range(8), root, taken=range(7)) == [[7], [7]]


def test_ranks_share_a_node_or_have_several(machine):
    root = machine(["0-1", "2-3", "4-5", "6-7"])
    assert cores(NUMA, 8, range(8), root)[::2] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert cores(NUMA, 2, range(8), root) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert cores(NUMA, 3, range(8), root) == [[0, 1], [2, 3], [4, 5, 6, 7]]
    assert cores(NUMA, 2, [2, 3], root) == [[2, 3], [2, 3]]


# ---- with devices ----------------------------------------------------------------------------------

FOUR = {0: "0000:C1:00.0", 1: "0000:01:00.0", 2: "0000:81:00.0", 3: "0000:41:00.0"}
PLACES = {"0000:c1:00.0": 1, "0000:01:00.0": 0, "0000:81:00.0": 1, "0000:41:00.0": 0}


def test_each_rank_has_its_part_of_the_cores_near_its_device(machine, npus):
    root = machine(["0-7", "8-15"], pci=PLACES)
    npus(FOUR)
    assert cores(CORE, [0, 1], range(16), root, target="Ascend") == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert cores(CORE, [2, 3], range(16), root, target="Ascend") == [[12, 13, 14, 15], [4, 5, 6, 7]]
    assert cores(NUMA, [0, 2], range(16), root, target="Ascend") == [list(range(8, 16))] * 2


def test_a_part_near_a_device_is_narrowed_by_other_jobs_and_not_moved_away(machine, npus):
    root = machine(["0-7", "8-15"], pci=PLACES)
    npus(FOUR)
    assert cores(CORE, [0, 1], range(16), root, taken=[8, 9], target="Ascend") == [[10, 11], [0, 1, 2, 3]]
    assert cores(CORE, [0, 1], range(16), root, taken=range(8), target="Ascend") == [[8, 9, 10, 11], []]


@pytest.mark.slow
@pytest.mark.parametrize("node", ["-1", "2", "x"])
def test_when_one_device_has_no_node_all_devices_of_the_host_share_evenly(machine, npus, node):
    root = machine(["0-7", "8-15"], pci={**PLACES, "0000:41:00.0": node})
    npus(FOUR)
    assert cores(CORE, [1, 2], range(16), root, target="Ascend") == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert cores(NUMA, [1, 2], range(16), root, target="Ascend") == [list(range(8)), list(range(8, 16))]


def test_devices_whose_node_we_may_not_use_share_what_we_may(machine, npus):
    root = machine(["0-7", "8-15"], pci=PLACES)
    npus(FOUR)
    assert cores(CORE, [0, 1], range(8), root, target="Ascend") == [[0, 1], [2, 3]]


def test_cores_that_somebody_chose_for_this_launch_are_for_its_devices_only(machine, npus):
    """Slurm gives a job two of four devices, and some cores."""
    root = machine(["0-7", "8-15"], pci=PLACES, online="0-15")
    npus(FOUR)
    assert cores(CORE, [0, 1], [0, 1, 2, 3, 9], root, target="Ascend") == [[9], [0, 1, 2, 3]]
    assert cores(CORE, [1, 3], [2, 3], root, target="Ascend") == [[2], [3]]
    assert cores(CORE, [1, 3], range(16), root, target="Ascend") == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("answer", ["NA", "0000:C1:00", ""])
def test_an_npu_smi_that_tells_no_address(machine, npus, answer):
    root = machine(["0-7"], pci=PLACES)
    npus(dict.fromkeys(range(2), answer))
    assert cores(CORE, [0, 1], range(8), root, target="Ascend") == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_without_the_vendors_program_the_ranks_share_evenly(machine):
    root = machine(["0-3"])
    for target in ("Ascend", "GPU"):
        assert cores(CORE, [6, 7], range(4), root, target=target) == [[0, 1], [2, 3]]


def test_a_gpu_is_found_by_the_address_that_nvidia_smi_prints(machine, tmp_path):
    root = machine(["0-3", "4-7"], pci={"0000:07:00.0": 1, "0001:0a:00.0": 0})
    program = tmp_path / "bin" / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '0, 00000000:07:00.0\\n1, 00000001:0A:00.0\\n'\n")
    program.chmod(0o755)
    assert cores(CORE, [0, 1], range(8), root, target="GPU") == [[4, 5, 6, 7], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-2,5", [0, 1, 2, 5]), (" 3 ", [3]), ("", []), ("1-", []), ("a", []), ("-1", []), ("7-3", [])],
)
def test_a_list_of_cores(text, numbers):
    assert core_shares.parse_list(text) == numbers


# ---- the plan --------------------------------------------------------------------------------------


@pytest.fixture
def four_cores(base, machine, monkeypatch):
    """This launch may use the cores 0 to 3, of which /sys tells nothing."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(core_shares, "_text", lambda root, path: "")


def planned(ranks=2, **given):
    given = {"bind_core": "1", **given}
    placed = Placement(ranks=[(rank, rank) for rank in range(ranks)], world=ranks, engine=LocalFacts())
    return binding.plan(request(device_target="CPU", **given), placed)


def test_the_plan_tells_the_ranks_their_cores(four_cores):
    assert planned().word() == "core CPU 0=0,1 1=2,3"
    assert planned().own() == {0, 1, 2, 3}
    assert planned(bind_core="", bind_numa="1").own() == set()


def test_a_rank_of_another_host_is_not_in_the_plan(four_cores):
    placed = Placement(ranks=[(0, 0), (1, 0)], hosts=["203.0.113.9", "localhost"], world=2, engine=LocalFacts())
    assert binding.plan(request(device_target="CPU", bind_core="1"), placed).word() == "core CPU 1=0,1,2,3"


def test_more_ranks_than_cores_are_refused(four_cores):
    with pytest.raises(Refusal) as refused:
        planned(ranks=5)
    assert "too few cores for the 5 ranks of this host: this launch may use only cores 0-3" in str(refused.value)


def test_both_options_at_once_are_refused(four_cores):
    with pytest.raises(Refusal, match="--bind_core and --bind_numa: give only one"):
        planned(bind_numa="1")


def test_another_job_narrows_the_plan_until_it_ends(four_cores, base):
    other = Job(base)
    assert other.take(cores=[0, 2]) == []
    assert planned().word() == "core CPU 0=1 1=3"
    with pytest.raises(Refusal, match=r"too few cores for the 3 ranks of this host: cores 0,2 in use by job \(process"):
        planned(ranks=3)
    other.end()
    assert planned().word() == "core CPU 0=0,1 1=2,3"


def test_two_jobs_never_have_the_same_core(four_cores, base):
    first, second, third = Job(base), Job(base), Job(base)
    assert first.take(cores=[0, 1], name="first") == []
    assert second.take(cores=[1, 2]) == ["first"]
    assert third.take(cores=[2]) == []  # the second one took nothing
    assert second.take(cores=[3]) == []


def test_a_lock_of_an_earlier_version_has_no_cores(base):
    job = Job(base)
    assert job.take(4) == []
    text = os.pread(os.open(job.path, os.O_RDONLY), 4096, 0)
    os.ftruncate(job.descriptor, 0)
    os.pwrite(job.descriptor, text.replace(b'"cores": [], ', b""), 0)
    assert [holder.cores for holder in device_locks.held()] == [[]]


def test_omp_num_threads_is_the_smallest_share(four_cores, monkeypatch):
    from tools.launch import environment

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    placed = Placement(ranks=[(0, 0), (1, 1), (2, 2)], world=3, engine=LocalFacts())
    given = request(device_target="CPU", bind_core="1")
    found = SimpleNamespace(cores={0: [0], 1: [1], 2: [2, 3]}, all=lambda: {0, 1, 2, 3})
    assert environment.exports(given, placed, "/run", None, True, found)["OMP_NUM_THREADS"] == "1"
    found = planned(ranks=1)
    assert environment.exports(given, placed, "/run", None, True, found)["OMP_NUM_THREADS"] == "4"


# ---- a rank of another host ------------------------------------------------------------------------


def test_a_rank_of_another_host_finds_its_cores_there(four_cores, base, monkeypatch):
    assert core_shares.here("core", "CPU", 1, 2, [0, 1, 2, 3]) == [2, 3]
    other = Job(base)
    assert other.take(cores=[0], name="other") == []
    assert core_shares.here("core", "CPU", 0, 3, [0, 1, 2]) == [1]
    monkeypatch.setenv("LOG_DIR", "other")  # its own job has these cores, on the launcher's host
    assert core_shares.here("core", "CPU", 0, 2, [0, 1]) == [0, 1]
