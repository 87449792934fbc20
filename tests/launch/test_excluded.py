"""--exclude: the devices and hosts that a launch leaves out."""

import re

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import host, programs, visible
from tools.launch.devices import excluded
from tools.launch.engines import facts, msrun, open_mpi, placement, slurm
from tools.launch.engines.facts import LocalFacts
from tools.launch.hosts import all_servers, network, table_servers
from tools.rank import device

EIGHT = range(8)


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """here(range(8)): the NPUs of this host, which is called n0; mpirun is Open MPI 5."""

    def have(devices):
        monkeypatch.setattr(host, "nodes", lambda: list(devices))
        monkeypatch.setattr(host, "devices", lambda: list(devices))

    for name in ("ASCEND_RT_VISIBLE_DEVICES", "SLURM_JOB_ID", *visible.WITHOUT_EFFECT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host, "owns", lambda name: name in ("n0", "localhost", "10.0.0.1", "127.0.0.1"))
    monkeypatch.setattr(network, "own_address_towards", lambda _: "10.0.0.1")
    monkeypatch.setattr(programs, "on_path", lambda _: True)
    monkeypatch.setattr(programs, "ask", lambda *_: programs.Ended(0, "mpirun (Open MPI) 5.0.1\n", ""))
    have(EIGHT)
    return have


def devices_of(placed):
    return [device for _, device in placed.ranks]


def by_host(placed):
    found = {}
    for name, (_, number) in zip(placed.hosts, placed.ranks):
        found.setdefault(name, []).append(number)
    return found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("3", [("", {3})]),
        ("3,5-7", [("", {3}), ("", {5, 6, 7})]),
        ("node2", [("node2", set())]),
        ("node1:3,node2:0-1,node3", [("node1", {3}), ("node2", {0, 1}), ("node3", set())]),
        ("host1:0,2@host2", [("host1", {0}), ("host1", {2}), ("host2", set())]),
        ("n[1-2]:3,4", [("n1", {3}), ("n2", {3}), ("n1", {4}), ("n2", {4})]),
        ("node3,5", [("node3", set()), ("", {5})]),
        (" 10.0.0.2:1 , 10.0.0.3,", [("10.0.0.2", {1}), ("10.0.0.3", set())]),
    ],
)
def test_what_is_left_out(text, parts):
    assert excluded.parse(text) == [(name, frozenset(devices)) for name, devices in parts]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (",", "it names nothing"),
        ("a:x", "a:x: a device is a number such as 3, or a range such as 0-3"),
        ("a:", "a:: a device is a number"),
        ("-x", "neither a host's name nor an IPv4 address"),
        ("a:99", "99 is too large; device ids run from 0 to 64"),
        ("5-3", "runs backwards"),
        ("n[1-2", "unbalanced brackets"),
        ("fd00::1", "a device is a number"),
        ("a;b", "neither a host's name"),
        ("\33[2J", "neither a host's name"),
    ],
)
def test_what_is_no_list_of_them(text, fault):
    with pytest.raises(Refusal) as refusal:
        excluded.parse(text)
    (line,) = refusal.value.lines
    assert line.startswith("--exclude ") and fault in line and line.isprintable()
    assert line.endswith("; write devices of this host such as 3, and others as HOST or HOST:3")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"script_devices": "", "exclude": "3"}, [0, 1, 2, 4, 5, 6, 7]),
        ({"script_devices": "", "n": "4", "exclude": "3"}, [0, 1, 2, 4]),
        ({"script_devices": "", "n": "2", "exclude": "3"}, [0, 1]),
        ({"script_devices": "", "devices": "7,3,1", "exclude": "n0:3"}, [7, 1]),
        ({"script_devices": "[4,8)", "exclude": "5"}, [0, 1, 2, 3]),
        ({"script_devices": "[4,8)", "exclude": "0-3"}, [4, 5, 6, 7]),
        ({"script_devices": "", "rank_size": "2", "exclude": "localhost:0,1"}, [2, 3]),
    ],
)
def test_ranks_of_this_host_run_on_other_devices(given, found):
    assert devices_of(placement.local(request(**given))) == found


def test_where_nobody_knows_the_devices_they_are_only_numbers(here):
    here([])
    assert devices_of(placement.local(request(script_devices="", n="3", exclude="1"))) == [0, 2, 3]
    on_cpu = request(script_devices="[0,2)", device_target="CPU", exclude="0")
    assert devices_of(placement.local(on_cpu)) == [1, 2]


def test_a_variable_that_limits_devices_counts_too(monkeypatch):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5,6")
    assert devices_of(placement.local(request(script_devices="", exclude="5"))) == [4, 6]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"script_devices": "[0,8)", "exclude": "3"}, "8 ranks need as many .* leaves 7: devices 0-2,4-7; .* -n 7$"),
        ({"script_devices": "", "exclude": "0-7"}, "--exclude 0-7 leaves no device; leave out fewer"),
        ({"script_devices": "", "exclude": "9"}, "--exclude 9: this host has no device 9; it has devices 0-7"),
        ({"script_devices": "", "devices": "3", "exclude": "3"}, "leaves no device"),
        ({"script_devices": "", "devices": "0-3", "n": "4", "exclude": "3"}, "without --exclude 3 names 3, -n is 4"),
        ({"script_devices": "", "exclude": "n0"}, "--exclude n0: this is the only host of the launch; name devices"),
        (
            {"script_devices": "", "exclude": "n1"},
            "--exclude n1: run.sh starts ranks on this host only; to exclude hosts,",
        ),
        ({"script_devices": "", "exclude": "n1:2"}, "--exclude n1: run.sh starts ranks on this host only"),
    ],
)
def test_what_cannot_be_left_out_on_this_host(given, fault):
    with pytest.raises(Refusal, match=fault):
        placement.local(request(**given))


def test_under_msrun_the_same_words_may_be_typed_on_every_host():
    asked = request(engine="msrun", worker_num="4", exclude="n0:1,n7:0")
    assert devices_of(msrun.place(asked)) == [0, 2, 3, 4]
    with pytest.raises(Refusal, match="--exclude n7: each host has its own command: do not type it on that host"):
        msrun.place(asked.replace(exclude="n7"))
    with pytest.raises(Refusal, match="without --exclude 1 names 1, this host has 2 ranks"):
        msrun.place(request(engine="msrun", worker_num="2", devices="0,1", exclude="1"))


@pytest.mark.parametrize(
    ("given", "found", "differing"),
    [
        ({"hosts": "a:2,b:2,c:2", "exclude": "b"}, {"a": [0, 1], "c": [0, 1]}, {}),
        ({"hosts": "a:2,u@b:3", "exclude": "b:1"}, {"a": [0, 1], "u@b": [0, 2]}, {1: [0, 2]}),
        ({"hosts": "n0:2,b:2", "exclude": "0"}, {"n0": [1], "b": [0, 1]}, {0: [1]}),
        ({"hosts": "a:4,b:4", "npernode": "2", "exclude": "b:0"}, {"a": [0, 1], "b": [1, 2]}, {1: [1, 2]}),
        ({"hosts": "a,b", "exclude": "A:0"}, {"a": [1], "b": [0]}, {0: [1]}),
        ({"hosts": "a:3,b:3", "n": "4", "exclude": "a:1"}, {"a": [0, 2], "b": [0, 1]}, {0: [0, 2]}),
        ({"hosts": "a:3,b:3", "devices": "3,5,7", "exclude": "a:5"}, {"a": [3, 7], "b": [3, 5, 7]}, {0: [3, 7]}),
        ({"hosts": "a:1,b:1", "exclude": "a:0@b:0", "npernode": "1"}, {"a": [1], "b": [1]}, {0: [1], 1: [1]}),
    ],
)
def test_ranks_of_mpirun_run_on_what_is_left(given, found, differing):
    placed = open_mpi.place(request(engine="mpirun", script_devices="", **given))
    assert by_host(placed) == found
    assert placed.engine.differing == differing
    room = {name: len(devices) for name, devices in found.items()} | ({"b": 3} if "n" in given else {})
    assert placed.engine.hosts == [f"{name}:{count}" for name, count in room.items()]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"n": "2", "exclude": "0"}, [1, 2]),
        ({"exclude": "3"}, [0, 1, 2, 4, 5, 6, 7]),
        ({"npernode": "2", "devices": "0,1,3", "exclude": "n0:1"}, [0, 3]),
    ],
)
def test_ranks_of_mpirun_on_this_host_alone(given, found):
    placed = open_mpi.place(request(engine="mpirun", script_devices="", **given))
    assert (devices_of(placed), placed.hosts) == (found, [])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"hosts": "a:2,b:2", "exclude": "c"}, "--exclude c: it is not one of the job's hosts: a, b"),
        ({"hosts": "a:2,b:2", "exclude": "3"}, r"this host is not one of the job's hosts \(a, b\); write HOST:3"),
        ({"hosts": "a:2,b:2", "exclude": "a@b"}, "--exclude a@b leaves no host"),
        ({"hosts": "a:2,b:2", "exclude": "a:0,1"}, "a would have 0 of 2 ranks without devices 0,1; leave out the host"),
        ({"hosts": "a:2,b:2", "npernode": "2", "devices": "0,1", "exclude": "a:0"}, "a would have 1 of 2 ranks"),
        ({"hosts": "a:2,b:2", "n": "4", "exclude": "a:0"}, "-n 4: the hosts have 3 slots in all"),
    ],
)
def test_what_cannot_be_left_out_under_mpirun(given, fault):
    with pytest.raises(Refusal, match=fault):
        open_mpi.place(request(engine="mpirun", script_devices="", **given))


def test_hosts_of_a_hostfile_that_get_their_ranks_by_n(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("a\nb\nc\n")
    placed = open_mpi.place(request(engine="mpirun", script_devices="", hostfile="hosts", n="4", exclude="b,c:0"))
    assert by_host(placed) == {"a": [0, 1], "c": [1, 2]}
    assert placed.engine.hostfile is None


class Agent(dict):
    """What an agent was told, and which rank it is."""

    def __init__(self, told, name, local_rank):
        super().__init__(DEVICES=told, TARGET="", SIZES="2x2 1x1")
        self.name, self.local_rank = name, local_rank


def test_an_agent_finds_the_devices_of_its_host():
    told = facts.devices_words(LocalFacts(devices=[0, 1], differing={1: [1, 2], 2: [7]}))
    assert told == "0 1;1:1 2;2:7"
    agents = [Agent(told, str(rank), rank % 2) for rank in range(5)]
    assert [device.number(agent) for agent in agents] == ["0", "1", "1", "2", "7"]
    assert device.physical(agents[3]) == [1, 2]
    assert facts.devices_words(LocalFacts(devices=[4, 5])) == "4 5"


def test_nodes_of_slurm_are_left_out_and_their_devices_are_not(monkeypatch):
    monkeypatch.setattr(slurm, "allocated_nodes", lambda: ["n1", "n2", "n3"])
    assert slurm.nodes_in_use(request(engine="srun", exclude="n[1,3]"))[0] == ["n2"]
    with pytest.raises(Refusal, match="--exclude n2:3: n2: device 3: Slurm gives each node its devices"):
        slurm.nodes_in_use(request(engine="srun", exclude="n2:3"))
    with pytest.raises(Refusal, match="--exclude n9: it is not one of the job's hosts: n1, n2, n3"):
        slurm.nodes_in_use(request(engine="srun", exclude="n9"))


def test_a_rank_table_of_several_hosts_has_whole_hosts(tmp_path, monkeypatch):
    hosts = open_mpi.host_list("a:8,b:8")
    asked = request(engine="mpirun", exclude="a")
    assert [one.login for one in all_servers.left(asked, hosts, False)] == ["b"]
    for given, fault in (
        ({"exclude": "a:3"}, "a rank table has the same devices on every host; exclude the whole host"),
        ({"exclude": "a", "rank_table": "t.json"}, "--exclude with --rank_table: the table already defines the hosts"),
    ):
        with pytest.raises(Refusal, match=re.escape(fault)):
            all_servers.left(request(engine="mpirun", **given), hosts, False)
    with pytest.raises(Refusal, match="--exclude: the rank table defines the devices"):
        table_servers.place(request(rank_table_file="t.json", exclude="3"), str(tmp_path))


def test_what_is_said_of_it():
    asked = request(script_devices="", exclude="3")
    placed = placement.local(asked)
    assert excluded.remarks(asked, placed, placed.ranks) == ["--exclude 3: the ranks run on devices 0-2,4-7"]
    asked = request(engine="mpirun", script_devices="", hosts="a:2,b:2,c:1", exclude="b")
    placed = open_mpi.place(asked)
    assert excluded.remarks(asked, placed, placed.ranks) == ["--exclude b: 3 ranks on the hosts a, c"]
    assert excluded.remarks(asked.replace(attempt=1), placed, placed.ranks) == []
