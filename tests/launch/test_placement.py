"""Which ranks run where; whole launches are in tests/engines/engines_*.bats."""

import os
import pickle
import re
import socket
from types import SimpleNamespace

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from hccl_tools.machine import addresses, programs
from hccl_tools.table import address
from tools.launch import plan
from tools.launch.engines import facts, msrun, open_mpi, placement, ports, slurm
from tools.launch.engines.facts import LocalFacts, MpirunFacts, OpenMpi
from tools.launch.engines.placement import Placement
from tools.launch.hosts import all_servers, network


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
    assert open_mpi.version_in(text) == version


def test_ranks_are_placed_host_by_host_on_the_devices_of_each():
    place = placement.spread(request(devices="4,5,6,7"), [("a", 2), ("b", 4)], 5, LocalFacts())
    assert place.ranks == [(0, 4), (1, 5), (2, 4), (3, 5), (4, 6)]
    assert place.hosts == ["a", "a", "b", "b", "b"]
    assert place.engine.devices == [4, 5, 6, 7]
    assert place.most_on_a_host() == 3


def test_a_host_needs_as_many_devices_as_it_has_ranks():
    with pytest.raises(Refusal, match="names 1, but a host has 2 ranks"):
        placement.spread(request(devices="0"), [("a", 2)], 2, LocalFacts())


@pytest.mark.parametrize(
    ("environment", "each"),
    [({"SLURM_TASKS_PER_NODE": "2(x2)"}, 2), ({"SLURM_TASKS_PER_NODE": "8", "SLURM_NTASKS_PER_NODE": "4"}, 4), ({}, 1)],
)
def test_slurms_tasks_of_a_node(monkeypatch, environment, each):
    for name in ("SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert slurm.tasks_per_node() == each


def test_a_number_of_tasks_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "many")
    with pytest.raises(Refusal, match="is not a number: many"):
        slurm.tasks_per_node()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (1, "does not work; it printed: libopen-rte.so: cannot open .exit 1."),
        (0, "is not Open MPI's; it prints: libopen-rte"),
    ],
)
def test_an_mpirun_that_fails_is_not_taken_for_another_mpi(monkeypatch, status, said):
    monkeypatch.setattr(programs, "on_path", lambda _name: True)
    answer = programs.Ended(status, "", "libopen-rte.so: cannot open\n")
    monkeypatch.setattr(programs, "ask", lambda *_: answer)
    with pytest.raises(Refusal, match=said):
        open_mpi.installed(request(engine="mpirun"))


def test_the_folder_of_a_wheel_is_told_to_mpirun_with_several_hosts_only(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("mpirun", "orterun_wrapper"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.8'\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    found = open_mpi.installed(request(engine="mpirun"), several=True)
    assert found == OpenMpi(version="4.1.8", prefix=str(tmp_path))
    assert open_mpi.installed(request(engine="mpirun")) == OpenMpi(version="4.1.8")
    (tmp_path / "bin" / "orterun_wrapper").unlink()
    assert open_mpi.installed(request(engine="mpirun"), several=True).prefix is None


# Hosts and how many ranks each gets: as Open MPI counts, but that ranks of hosts in a file have devices and not cores.
@pytest.mark.parametrize(
    ("given", "slots"),
    [
        ({"hosts": "node1:2,root@10.0.0.1:8"}, [("node1", 2), ("root@10.0.0.1", 8)]),
        ({"hosts": "a,b,a,"}, [("a", 2), ("b", 1)]),
        ({"hosts": "a,b", "npernode": "4"}, [("a", 4), ("b", 4)]),
        ({"hosts": "a:8,b:8", "npernode": "4"}, [("a", 4), ("b", 4)]),
        ({"hostfile": "a\nb\n", "npernode": "4"}, [("a", 4), ("b", 4)]),
        ({"hostfile": "a\nb\n", "n": "4"}, [("a", 2), ("b", 2)]),
        ({"hostfile": "a\n", "n": "4"}, [("a", 4)]),
        ({"hostfile": "a slots=8\nb slots=4\n", "n": "4"}, [("a", 8), ("b", 4)]),
        ({"n": "2", "npernode": "3"}, [("localhost", 3)]),
    ],
)
def test_hosts_and_their_ranks(world, given, slots):
    if "hostfile" in given:
        (world / "hosts").write_text(given["hostfile"])
        given = {**given, "hostfile": "hosts"}
    asked = request(engine="mpirun", **given)
    found, remarks = open_mpi.slots_of(asked, open_mpi.all_hosts(asked)[0], 0)
    assert found == slots
    assert bool(remarks) == (given.get("n") == "4" and slots == [("a", 2), ("b", 2)])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"hosts": "a:2", "npernode": "4"}, "--npernode 4: a has 2 slots; write that number of slots, or none"),
        ({"hostfile": "a\nb\n"}, "HOSTFILE hosts: a has no slots=N; write how many devices it has: a slots=8"),
        ({"hostfile": "a\nb\n", "n": "3"}, "a has no slots=N, and -n 3 cannot be divided among 2 hosts"),
        ({"hostfile": "a slots=8\nb\n", "n": "4"}, "b has no slots=N"),
    ],
)
def test_hosts_without_a_number_of_ranks(world, given, fault):
    if "hostfile" in given:
        (world / "hosts").write_text(given["hostfile"])
        given = {**given, "hostfile": "hosts"}
    asked = request(engine="mpirun", **given)
    with pytest.raises(Refusal) as refusal:
        open_mpi.slots_of(asked, open_mpi.all_hosts(asked)[0], 0)
    assert fault in refusal.value.lines[0]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "there is no host in it"),
        ("node1:8,node2:0", "node2:0 has no number of ranks"),
        ("node1:99999999999", "has no number of ranks"),
        (
            "fd00::1",
            "fd00::1 is an IPv6 address, which Open MPI does not accept in a list of hosts; write the host's name",
        ),
        (":8", "is neither a host's name nor an IPv4 address"),
    ],
)
def test_what_is_wrong_with_a_list_of_hosts(text, fault):
    with pytest.raises(Refusal, match="^HOSTS: ") as refusal:
        open_mpi.host_list(text)
    assert fault in refusal.value.lines[0]


@pytest.mark.parametrize(
    ("given", "ranks", "told"),
    [
        ({}, range(8), {"node": 0, "has_scheduler": True, "devices": list(range(8)), "scheduler_port": 0}),
        ({"worker_num": "4", "local_worker_num": "4"}, range(4), {"world": 4, "scheduler_host": "127.0.0.1"}),
        ({"worker_num": "2", "master_port": "2000"}, range(2), {"scheduler_port": 2000}),
    ],
)
def test_ranks_under_msrun(given, ranks, told):
    place = msrun.place(request(engine="msrun", **given))
    assert [rank for rank, _ in place.ranks] == list(ranks)
    found = {**place.engine.as_dict(), **place.cluster.as_dict()}
    assert {**found, **told} == found


def test_the_folder_of_links_without_mpiruns_qualifiers(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "on_path", lambda _name: True)
    monkeypatch.setattr(programs, "ask", lambda *_: programs.Ended(0, "mpirun (Open MPI) 4.1.4\n", ""))
    for named, folder in (("out", "out"), ("out:nojobid,nocopy", "out"), ("out:x", "out:x")):
        assert open_mpi.installed(request(engine="mpirun", output_filename=named)).logs == str(tmp_path / folder)
    with pytest.raises(Refusal, match="-n 3: --npernode 1 on 2 hosts makes 2; write the same number in both"):
        open_mpi.place(request(engine="mpirun", hosts="a,b", n="3", npernode="1"))


def test_a_port_that_somebody_has_is_refused_with_who_it_is(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        asked = request(engine="msrun", worker_num="2", master_port=port)
        with pytest.raises(Refusal) as refusal:
            msrun.place(asked)
        (line,) = refusal.value.lines
        assert line.startswith(f"--master_port {port}: Address already in use: process {os.getpid()} listens there: ")
        assert re.search(r"write another one, such as --master_port [0-9]+, or leave it out: then a free one", line)
        assert msrun.place(asked.replace(dry_run=True)).world == 2
        monkeypatch.setenv("MS_SCHED_PORT", port)
        with pytest.raises(Refusal, match=rf"MS_SCHED_PORT={port} is in use; .* \(process {os.getpid()} listens there"):
            ports.free(1)
    assert msrun.place(asked).world == 2


@pytest.mark.parametrize("given", [{"engine": "local"}, {"engine": "nice"}, {"engine": "mpirun", "placement": "local"}])
def test_an_engine_without_hosts_starts_its_ranks_here(given):
    place, table = plan.place(request(rank_size="2", devices="4,5", **given), "logs/run")
    assert (place.ranks, place.world, table) == ([(0, 4), (1, 5)], 2, None)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("KillWait                = 10 sec", 10),
        ("KillWait = 08 sec", 8),
        ("KillWait = 99999999999999999999 sec", 30),
        ("KillWait = (null)", 30),
        ("", 30),
    ],
)
def test_slurms_kill_wait_is_a_number_of_seconds(monkeypatch, line, seconds):
    answers = {
        name: SimpleNamespace(stdout=text) for name, text in {"node": "NodeAddr=127.0.0.1", "config": line}.items()
    }
    monkeypatch.setattr(slurm.programs, "ask_all", lambda *_: answers)
    assert slurm.facts("n0") == ("127.0.0.1", seconds)


def test_a_node_of_slurm_may_have_an_address_of_ipv6(monkeypatch):
    answers = {
        "node": SimpleNamespace(stdout="NodeAddr=[fd00::9] NodeHostName=n0"),
        "config": SimpleNamespace(stdout=""),
    }
    monkeypatch.setattr(slurm.programs, "ask_all", lambda *_: answers)
    assert slurm.facts("n0")[0] == "fd00::9"


@pytest.mark.parametrize(("text", "number"), [("123", 123), ("0123", 123)])
def test_slurms_number_of_the_job(monkeypatch, text, number):
    monkeypatch.setenv("SLURM_JOB_ID", text)
    assert slurm.job_id() == number


@pytest.mark.parametrize("text", ["", "my job", "12_3", "a[$(touch ran)]", "²"])
def test_a_job_id_that_is_not_a_number_is_refused(monkeypatch, text):
    monkeypatch.setenv("SLURM_JOB_ID", text)
    with pytest.raises(Refusal, match="SLURM_JOB_ID .* is not the number of a job"):
        slurm.job_id()


def test_an_engine_takes_the_facts_of_no_other():
    engine = MpirunFacts(mpi=OpenMpi(version="4.1.8"), ranks=2, hosts=["a:2"])
    assert facts.of(MpirunFacts, pickle.loads(pickle.dumps(engine))) == engine  # as a restart's plan comes
    with pytest.raises(TypeError, match="MpirunFacts are needed, the plan has LocalFacts"):
        facts.of(MpirunFacts, LocalFacts())


@pytest.mark.parametrize(
    ("sizes", "text"),
    [([2], "2x1"), ([8, 8, 4], "8x2 4x1"), ([1, 2, 2, 1], "1x1 2x2 1x1"), ([8] * 8192, "8x8192")],
)
def test_hosts_of_one_size_are_one_group(sizes, text):
    assert facts.sizes_words(sizes) == text


def test_the_sizes_of_all_hosts_are_known_where_only_some_ranks_are_started():
    here = {"ranks": [(2, 0), (3, 1)], "world": 5, "engine": LocalFacts()}
    assert Placement(**here, job=[2, 2, 1]).sizes() == [2, 2, 1]
    assert Placement(**here, job=[2, 2, 1]).most_on_a_host() == 2
    assert Placement(**here).sizes() == [2]
    assert Placement(**here, hosts=["a", "b"]).sizes() == [1, 1]
    place = msrun.place(request(engine="msrun", worker_num="2", local_worker_num="2"))
    assert place.sizes() == [2]


def servers(*sizes):
    return [SimpleNamespace(name=f"10.0.0.{n}", ranks=[(0, 0)] * size) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("version", "others", "order"),
    [
        ("4.1.4", ["10.0.0.1"], (["10.0.0.0:1", "10.0.0.1:2"], "slot")),
        ("4.1.4", ["10.0.0.0", "10.0.0.1"], (["10.0.0.0:1", "10.0.0.1:2"], "slot")),
        ("4.1.4", ["10.0.0.0"], (["10.0.0.0", "10.0.0.1", "10.0.0.1"], "seq")),
        ("5.0.11", ["10.0.0.0"], (["10.0.0.0:1", "10.0.0.1:2"], "slot")),
    ],
)
def test_mpirun_numbers_ranks_in_the_order_of_the_table(version, others, order):
    assert all_servers.host_order(servers(1, 2), others, version) == order


def test_more_names_than_a_command_line_holds_are_refused():
    with pytest.raises(Refusal, match="the rank table with 10.0.0.0; type the command there"):
        all_servers.host_order(servers(1, 1 << 15), ["10.0.0.0"], "4.1.4")


# ---- IPv6 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("[fd00::7]", "fd00::7"), ("FD00:0::7", "fd00::7")],
)
def test_an_address_of_ipv6_is_taken_with_and_without_brackets(name, found):
    assert network.address_of(name, "the host") == found


def test_a_name_has_its_ipv4_address_before_that_of_ipv6(monkeypatch):
    known = {"both": {socket.AF_INET: "10.0.0.1", socket.AF_INET6: "fd00::1"}, "new": {socket.AF_INET6: "fd00::1"}}

    def look_up(name, port, kind, *_):
        if kind not in known[name]:
            raise socket.gaierror(-5, "No address")
        return [(kind, 1, 6, "", (known[name][kind], 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert [network.address_of(name, name) for name in known] == ["10.0.0.1", "fd00::1"]
    assert addresses.of(known) == {"both": "10.0.0.1", "new": "fd00::1"}


@pytest.mark.parametrize("name", ["fe80::1", "[fe80::1]", "febf::2"])
def test_an_address_of_one_link_is_refused_as_another_host_would_not_reach_it(name):
    with pytest.raises(Refusal, match="is a link-local address; give an address that all hosts reach"):
        network.address_of(name, "--master_addr")


def test_this_hosts_address_towards_a_host_of_ipv6_is_of_ipv6():
    assert network.own_address_towards(["::1"]) == "::1"


def test_a_port_is_looked_at_where_the_scheduler_will_listen():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        assert ports.fault(port, "::1") == "Address already in use"
    assert ports.fault(port, "::1") is None


def test_msrun_takes_addresses_of_ipv6():
    place = msrun.place(request(engine="msrun", worker_num=2, master_addr="[::1]", device_target="CPU"))
    assert place.cluster.scheduler_host == "::1" and place.engine.has_scheduler
    words = {"worker_num": 4, "local_worker_num": 2, "node_rank": 1}
    with pytest.raises(Refusal, match="--master_addr ::1 can be reached only from this host"):
        msrun.place(request(engine="msrun", master_addr="::1", **words))
    far = msrun.place(request(engine="msrun", master_addr="2001:db8::1", dry_run="1", **words))
    assert (far.meeting.address, far.engine.has_scheduler) == ("2001:db8::1", False)


@pytest.mark.parametrize(
    ("text", "loopback", "link"),
    [("127.0.0.1", True, False), ("::1", True, False), ("0:0::1", True, False), ("fe80::1", False, True), ("a", 0, 0)],
)
def test_what_only_one_host_or_link_reaches(text, loopback, link):
    assert (address.is_loopback(text), address.is_of_one_link(text)) == (loopback, link)
