"""Maps of --bind_core and --bind_numa: what is read, what is refused, and how ranks get it."""

import hashlib
import json
import os
from types import SimpleNamespace

import pytest
from launching import request
from locking import base
from test_binding import Job, machine

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import programs
from tools.command.command import read
from tools.command.declaration import Declaration
from tools.launch.devices import binding, binding_maps, core_shares
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.programs import rank_words
from tools.rank import beginning

__all__ = ["base", "machine"]

NODES = {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}


@pytest.fixture(autouse=True)
def eight_cores(base, monkeypatch):
    """Eight cores on two NUMA nodes, and numactl."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(core_shares, "node_numbers", lambda root="": sorted(NODES))
    monkeypatch.setattr(core_shares, "cores_of_node", lambda node, root="": NODES.get(node, []))
    monkeypatch.setattr(programs, "on_path", lambda name: True)


def plan(core=None, numa=None, devices=(0, 1), **more):
    given = {"bind_core": core, "bind_numa": numa}
    ranks = list(enumerate(devices))
    place = Placement(**{"ranks": ranks, "world": len(ranks), "engine": LocalFacts(), **more})
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items() if value}
    return binding.plan(request(device_target="Ascend", **texts), place)


def why(*args, **more):
    with pytest.raises(Refusal) as refused:
        plan(*args, **more)
    return refused.value.lines[0]


def document(modes, cpu=None, memory=None):
    names = ("bind_cpu_mode", "bind_memory_mode")
    return {"bind_config": dict(zip(names, modes)), "bind_cpu": cpu or {}, "bind_memory": memory or {}}


# ---- what is read --------------------------------------------------------------------------------------


def test_a_map_of_cores_is_for_the_physical_devices():
    found = plan({"device6": ["0-2", "7"], "device_7": ["3, 4"], "scheduler": ["5"]}, devices=(6, 7))
    assert (found.mode, found.cores, found.scheduler) == ("core", {0: [0, 1, 2, 7], 1: [3, 4]}, [5])
    assert found.own() == {0, 1, 2, 3, 4, 5, 7} and found.all() == {0, 1, 2, 3, 4, 7}
    assert found.word() == "core Ascend 0=0,1,2,7 1=3,4 scheduler=5"


def test_a_map_of_nodes_binds_to_their_cores_and_their_memory():
    found = plan(numa={"device0": ["1"], "device1": ["0-1"]})
    assert (found.mode, found.cores) == ("numa", {0: [4, 5, 6, 7], 1: list(range(8))})
    assert (found.memory, found.own()) == ({0: [1], 1: [0, 1]}, set())
    assert found.word() == "numa Ascend 0=4,5,6,7@1 1=0,1,2,3,4,5,6,7@0,1"


def test_cores_by_one_map_and_memory_by_the_other():
    found = plan({"device0": ["0"], "device1": ["1"]}, {"device0": ["1"], "device1": ["1"]})
    assert (found.cores, found.memory) == ({0: [0], 1: [1]}, {0: [1], 1: [1]})


@pytest.mark.parametrize(
    ("content", "cores", "memory"),
    [
        (document(("cpu", "numa"), {"device0": {"main": "0-1"}}, {"device0": 1}), {0: [0, 1], 1: []}, {0: [1]}),
        (document(("numa", "none"), {"device0": 1, "device1": "0"}), {0: NODES[1], 1: NODES[0]}, {}),
        (document(("none", "numa"), memory={"device1": "0,1"}), {0: [], 1: []}, {1: [0, 1]}),
        (document(("cpu", "none"), {"device0": None, "device1": {"other": "3"}}), {0: [], 1: []}, {}),
    ],
)
def test_a_file_says_how_cores_and_memory_are_bound(tmp_path, content, cores, memory):
    path = tmp_path / "bind.json"
    path.write_text(json.dumps(content))
    found = plan(numa=str(path))
    assert (found.cores, found.memory) == (cores, memory)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.exports == {"MSRUN_BIND_FILE": str(path), "MSRUN_BIND_FILE_HASH": digest}


# ---- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("core", "numa", "text"),
    [
        ('{"device0": ', None, "--bind_core MAP: is not JSON: "),
        ("[1]", None, "--bind_core [1]: cannot be read: No such file or directory"),
        ({"card0": ["1"]}, None, '--bind_core MAP: card0 is "card0"; write one of: device0, device1, scheduler'),
        ({"device0": ["1-"]}, None, '--bind_core MAP: device0 is ["1-"]; write one of: "0-3" | "0,1"'),
        ({"device0": [True]}, None, "--bind_core MAP: device0 is [true]; write one of: "),
        ({"device0": {"main": "0"}}, None, "--bind_core MAP: device0 is "),
        ({"device0": ["6-9"]}, None, "--bind_core: this launch may not use the cores 8,9; it may use 0-7"),
        ({"scheduler": ["9"]}, None, "--bind_core: this launch may not use the cores 9; it may use 0-7"),
        (None, {"device1": ["2"]}, "--bind_numa: this host has no NUMA nodes 2; it has 0,1"),
        (None, document(("cores", "none")), "--bind_numa MAP: bind_config.bind_cpu_mode is "),
        (None, {"bind_config": []}, "--bind_numa MAP: bind_config is []; write one of: {...}"),
        ({"device0": ["1"]}, "1", "--bind_numa: the other option has a map, so this one needs one, too"),
        (None, "no.json", "--bind_numa no.json: cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_map_is_refused(core, numa, text):
    assert why(core, numa).startswith(text)


def test_an_escape_sequence_in_a_map_does_not_reach_the_terminal():
    assert "\x1b" not in why({"device\x1b[31m": ["1"]})


def test_without_numactl_memory_cannot_be_bound(monkeypatch):
    monkeypatch.setattr(programs, "on_path", lambda name: False)
    assert why(numa={"device0": ["0"]}) == (
        "--bind_numa: numactl, which binds the memory of ranks, is not on PATH; install the package numactl"
    )


def test_cores_that_another_job_has_are_refused(base):
    Job(base).take(4, name="other", cores=[1])
    assert why({"device0": ["0-1"]}).startswith("--bind_core: core 1 in use by other (process ")


def test_a_map_is_for_one_host():
    assert why({"device0": ["0"]}, hosts=["localhost", "10.255.255.254"]).startswith("a map of --bind_core")


# ---- how ranks get it ----------------------------------------------------------------------------------


def told(word, name, is_scheduler=False):
    class Told(SimpleNamespace):
        def __getitem__(self, _):
            return word

    return Told(name=name, is_scheduler=is_scheduler)


def test_an_agent_reads_cores_and_memory():
    word = "core Ascend 0=0,1@1 1=2 2= scheduler=7"
    assert beginning.cores_of(told(word, "0")) == {0: [0, 1]} and beginning.memory_of(told(word, "1")) == []
    assert beginning.memory_of(told(word, "0")) == ["numactl", "--membind", "1", "--"]
    assert beginning.cores_of(told(word, "2")) == {2: []}
    assert beginning.cores_of(told(word, "scheduler", True)) == {0: [7]}
    assert beginning.cores_of(told("core Ascend 0=1", "scheduler", True)) is None
    assert beginning.cores_of(told("", "0")) is None


def test_the_launcher_puts_numactl_before_the_rank():
    asked = SimpleNamespace(per_rank_words=False)
    found = SimpleNamespace(request=asked, binding=SimpleNamespace(memory={1: [0, 1]}))
    assert rank_words.command(found, ["python", "x.py"], 0, 0, 0) == ["python", "x.py"]
    assert rank_words.command(found, ["python", "x.py"], 1, 1, 1) == [
        "numactl",
        "--membind",
        "0,1",
        "--",
        "python",
        "x.py",
    ]


@pytest.mark.parametrize(
    ("script", "typed", "core", "numa", "program"),
    [
        ("run_msrun.sh", ["--bind_core", '{"device0": ["0"]}', "x.py"], '{"device0": ["0"]}', "", ["x.py"]),
        ("run_msrun.sh", ['--bind_core={"a": 1}', "x.py"], '{"a": 1}', "", ["x.py"]),
        ("run_msrun.sh", ["--bind_core", "x.py"], "1", "", ["x.py"]),
        ("run_msrun.sh", ["--bind_core", "True", "--bind_numa=False", "x.py"], "1", "", ["x.py"]),
        ("run_msrun.sh", ["--bind_numa", "bind.json", "x.py"], "", "bind.json", ["x.py"]),
        ("run_msrun.sh", ["--bind_numa=bind.json", "x.py"], "", "bind.json", ["x.py"]),
    ],
)
def test_a_map_is_typed_as_for_msrun(script, typed, core, numa, program):
    found = read(Declaration.from_words([f"script=scripts/{script}", "msrun", "CONFIG", "device_target=Ascend"]), typed)
    values = dict(word.partition("=")[::2] for word in found.words[: found.words.index("--")])
    assert (values.get("bind_core", ""), values.get("bind_numa", ""), list(found.program)) == (core, numa, program)


def test_a_rank_table_behind_the_option_is_no_map():
    words = ["script=scripts/run_cluster.sh", "local", "DATA_PATH", "RANK_TABLE_FILE", "RANK_SIZE", "RANK_START"]
    declaration = Declaration.from_words([*words, "placement=server", "device_target=Ascend"])
    found = read(declaration, ["--bind_numa", "data", "hccl.json", "8", "0"])
    assert "bind_numa=1" in found.words and "rank_table_file=hccl.json" in found.words
    assert binding_maps.is_map("{}") and not binding_maps.is_map("1") and not binding_maps.is_map(None)
