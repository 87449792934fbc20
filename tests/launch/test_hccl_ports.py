"""The ports at which HCCL listens: those of two jobs of one host do not meet; whole launches are in locks.bats."""

import os
import socket

import pytest
from launching import request
from locking import Job, base

from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.machine import driver, host, sockets
from tools.launch.devices import device_locks
from tools.launch.engines import hccl_choice, hccl_ports
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.hosts.launchers import Meeting

__all__ = ["base"]

DEFAULT = (60000, 60031)
FIRST = (61024, 61055)  # of the ranges that are chosen


@pytest.fixture(autouse=True)
def quiet_host(base, monkeypatch):
    """No job, no server, 8 devices, and the kernel's usual range for outgoing connections."""
    for name in (hccl_ports.VARIABLE, hccl_ports.HOST_RANGE, hccl_ports.NPU_RANGE, "ASCEND_HOME_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host, "devices", lambda: list(range(8)))
    monkeypatch.setattr(sockets, "listening", lambda ports, root="": set())
    monkeypatch.setattr(sockets, "outgoing", lambda root="": range(32768, 61000))
    monkeypatch.setattr(sockets, "reserved", lambda root="": "")


def placed(*devices, **more):
    ranks = [(rank, device) for rank, device in enumerate(devices or (0, 1))]
    return Placement(**{"ranks": ranks, "world": len(ranks), "engine": LocalFacts(), **more})


def launchers(*sizes, job="a job"):
    """A host of a job that was typed on each of them."""
    meeting = Meeting(hosts=["a", "b"], number=0, address="10.0.0.1", scheduler_port=8118, job=job)
    return {"job": list(sizes), "meeting": meeting}


def of_job(place, **given):
    return hccl_choice.of_job(request(**given), place)


def other_job(base, ports, devices=(4, 5), name="other"):
    """Another job of this host that has these ports and devices."""
    job = Job(base)
    assert device_locks.take(job.descriptor, job.path, name, job.pid, list(devices), set(), ports) == []
    return job


def why(place, **given):
    with pytest.raises(Refusal) as refused:
        of_job(place, **given)
    assert refused.value.status == REFUSED
    return refused.value.lines[0]


# ---- what the launch chooses -----------------------------------------------------------------------


def test_a_job_alone_on_its_host_keeps_hccls_default():
    found = of_job(placed())
    assert (found.ranges, found.origin, found.exports, found.remarks) == ([DEFAULT], "default", {}, ())
    assert found.record() == {"ports": "60000-60031", "origin": "default"}


def test_a_second_job_gets_other_ports_and_is_told_who_has_the_first_ones(base):
    first = other_job(base, [DEFAULT])
    found = of_job(placed())
    assert (found.ranges, found.origin, found.exports) == ([FIRST], "chosen", {"HCCL_IF_BASE_PORT": "61024"})
    assert found.remarks[0] == (
        f"note: HCCL gets the ports 61024-61055 in this job: other has 60000-60031 (process {os.getpid()})"
    )
    other_job(base, [FIRST], (6, 7))
    assert of_job(placed()).ranges == [(61056, 61087)]
    first.end()
    assert of_job(placed()).origin == "default"


def test_of_two_launches_that_choose_the_same_ports_one_is_sent_back(base):
    other_job(base, [(60031, 60040)])
    late = Job(base)
    holders = device_locks.take(late.descriptor, late.path, "late", late.pid, [0], set(), [DEFAULT])
    assert [holder.job for holder in holders] == ["other"]


def test_a_server_at_one_of_the_default_ports_moves_the_job(monkeypatch):
    monkeypatch.setattr(sockets, "listening", lambda ports, root="": {60007, 61030} & set(ports))
    found = of_job(placed())
    assert found.ranges == [(61056, 61087)]
    assert "port 60007 is in use: " in found.remarks[0]


def test_ports_that_the_kernel_gives_away_come_last(base, monkeypatch):
    monkeypatch.setattr(sockets, "outgoing", lambda root="": range(32768, 62001))
    other_job(base, [DEFAULT])
    assert of_job(placed()).ranges == [(62016, 62047)]
    monkeypatch.setattr(sockets, "outgoing", lambda root="": range(1024, 65536))
    assert of_job(placed()).ranges == [FIRST]


def test_a_job_that_waits_for_devices_does_not_avoid_the_ports_of_the_job_that_has_them(base, monkeypatch):
    other_job(base, [DEFAULT], (1, 2))
    monkeypatch.setattr(sockets, "listening", lambda ports, root="": {60001} & set(ports))
    assert of_job(placed()).origin == "default"
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "60000")
    assert of_job(placed()).origin == "user"


def test_a_restart_keeps_the_ports_of_its_job(base):
    other_job(base, [DEFAULT])
    mine = other_job(base, [(61056, 61087)], (0, 1), "mine")
    found = of_job(placed(), attempt=1, lock_file=mine.path)
    assert (found.ranges, found.exports) == ([(61056, 61087)], {"HCCL_IF_BASE_PORT": "61056"})


def test_when_all_ports_are_taken_the_launch_is_refused(base):
    other_job(base, [(60000, 65535)])
    text = why(placed())
    assert text.startswith("HCCL has no free ports on this host: other has 60000-65535 (process ")
    assert text.endswith("; wait until a job has ended, or set HCCL_IF_BASE_PORT")


@pytest.mark.parametrize(
    ("chip", "version", "names"),
    [
        ("A3", "8.1.RC1", ["HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_IF_BASE_PORT", "HCCL_NPU_SOCKET_PORT_RANGE"]),
        ("950", "9.0.0", ["HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_IF_BASE_PORT", "HCCL_NPU_SOCKET_PORT_RANGE"]),
        ("A3", "8.0.0", ["HCCL_IF_BASE_PORT"]),  # it does not read them
        ("A3", None, ["HCCL_IF_BASE_PORT"]),
        ("A2", "8.5.0", ["HCCL_IF_BASE_PORT"]),  # some operators cannot have them
        ("910A", "8.5.0", ["HCCL_IF_BASE_PORT"]),
    ],
)
def test_ranges_are_set_where_cann_reads_them_and_they_do_no_harm(base, tmp_path, monkeypatch, chip, version, names):
    if version:
        (tmp_path / "compiler").mkdir()
        (tmp_path / "compiler" / "version.info").write_text(f"Version={version}\n")
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    other_job(base, [DEFAULT])
    exports = of_job(placed(), generation=chip).exports
    assert sorted(exports) == names
    if len(names) > 1:
        assert exports["HCCL_HOST_SOCKET_PORT_RANGE"] == "61024-61055"
        assert exports["HCCL_NPU_SOCKET_PORT_RANGE"] == "18024-18055"
        monkeypatch.setenv("HCCL_NPU_SOCKET_PORT_RANGE", "auto")
        assert "HCCL_NPU_SOCKET_PORT_RANGE" not in of_job(placed(), generation=chip).exports


def test_the_release_of_cann_is_its_first_two_numbers():
    texts = ("8.1.RC1", "8.5.0", "9.0.0-beta1", "RC1", "", None)
    assert [driver.cann_release(text) for text in texts] == [(8, 1), (8, 5), (9, 0), None, None, None]


# ---- a job whose hosts have a launcher each ----------------------------------------------------------


def test_launchers_of_one_job_come_to_the_same_ports_whatever_else_their_hosts_run(base):
    here = of_job(placed(0, 1, **launchers(2, 2)))
    other_job(base, [DEFAULT])
    there = of_job(placed(6, 7, **launchers(2, 2)))
    assert here.ranges == there.ranges != [DEFAULT] and here.origin == there.origin == "derived"
    assert of_job(placed(0, 1, **launchers(2, 2, job="another job"))).ranges != here.ranges
    assert here.exports == {"HCCL_IF_BASE_PORT": str(here.ranges[0][0])}
    assert here.ranges[0][0] > 61000 and here.ranges[0][1] <= 65535
    assert "it shares some of their devices, and another job may have 60000-60031; firewalls" in here.remarks[0]


def test_a_job_that_has_whole_hosts_keeps_the_default_on_all_of_them(monkeypatch):
    assert of_job(placed(*range(8), **launchers(8, 8))).origin == "default"
    assert of_job(placed(*range(8), **launchers(8, 4))).origin == "derived"
    assert of_job(placed(0, 1, 2, 3, **launchers(8, 4))).origin == "derived"
    monkeypatch.setattr(host, "devices", list)  # nothing tells
    assert of_job(placed(0, 1, **launchers(2, 2))).origin == "default"


def test_derived_ports_that_another_job_has_are_refused_with_others(base):
    own = of_job(placed(0, 1, **launchers(2, 2))).ranges
    other_job(base, own)
    text = why(placed(0, 1, **launchers(2, 2)))
    assert "on all hosts of this job, but other has " in text
    assert text.endswith(f"; set others on every host: export HCCL_IF_BASE_PORT={61024 if own != [FIRST] else 61056}")


def test_nodes_of_slurm_derive_from_the_job(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    place = {"hosts": ["n1", "n1", "n2", "n2"]}
    found = of_job(placed(0, 1, 0, 1, **place), engine="srun")
    assert found.origin == "derived"
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    assert of_job(placed(0, 1, 0, 1, **place), engine="srun").ranges != found.ranges


# ---- what the user has set ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "ports"),
    [
        ("HCCL_IF_BASE_PORT", "61500", "61500-61531"),
        ("HCCL_IF_BASE_PORT", "65520", "65520-65535"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "61500", "61500"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "61600-61610,61500", "61500,61600-61610"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "auto", "auto"),
    ],
)
def test_the_users_ports_stay(base, monkeypatch, name, value, ports):
    monkeypatch.setenv(name, value)
    other_job(base, [DEFAULT])
    found = of_job(placed())
    assert (found.words(), found.origin, found.exports) == (ports, "user", {})


def test_the_range_comes_before_the_first_port_but_where_cann_does_not_read_it(monkeypatch):
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "61500")
    monkeypatch.setenv("HCCL_HOST_SOCKET_PORT_RANGE", "61600-61610")
    assert of_job(placed()).words() == "61600-61610"
    assert of_job(placed(), generation="910A").words() == "61500-61531"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HCCL_IF_BASE_PORT", "80"),
        ("HCCL_IF_BASE_PORT", "65521"),
        ("HCCL_IF_BASE_PORT", "6x\x1b[31m"),
        *(
            ("HCCL_HOST_SOCKET_PORT_RANGE", text)
            for text in ("0", "65536", "61010-61000", "a", ",", "61000-61010,61010", "auto,1", "1-2-3", "-5")
        ),
        ("HCCL_NPU_SOCKET_PORT_RANGE", "17000 - 17001"),
    ],
)
def test_what_hccl_would_refuse_minutes_later_is_refused_before_the_start(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    text = why(placed())
    assert text.startswith(f"{name}=") and " is not a " in text and "unset it" in text and "\x1b" not in text


def test_the_users_ports_that_another_job_has_are_refused(base, monkeypatch):
    other_job(base, [(61031, 61062)])
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "61000")
    text = why(placed())
    assert text.startswith("HCCL_IF_BASE_PORT=61000: HCCL listens at 61000-61031, but other has 61031-61062 (process ")
    assert text.endswith(
        "; unset HCCL_IF_BASE_PORT: then the launch chooses free ones; or wait until that job has ended"
    )


def test_the_users_ports_at_which_a_server_listens_are_refused_if_a_rank_needs_one(monkeypatch):
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "61000")
    monkeypatch.setattr(sockets, "listening", lambda ports, root="": {61001, 61009} & set(ports))
    assert "but port 61001 is in use: " in why(placed(0, 1))
    assert of_job(placed(2, 3)).origin == "user"
    monkeypatch.setenv("HCCL_HOST_SOCKET_PORT_RANGE", "61000-61001")  # HCCL takes one that is free
    assert of_job(placed(0, 1)).origin == "user"
    monkeypatch.setenv("HCCL_HOST_SOCKET_PORT_RANGE", "61001,61009")
    assert "HCCL_HOST_SOCKET_PORT_RANGE=61001,61009: HCCL listens at 61001,61009, but port 61001" in why(placed(0, 1))


def test_the_users_ports_that_the_kernel_may_give_away_are_noted(monkeypatch):
    monkeypatch.setenv("HCCL_IF_BASE_PORT", "50000")
    monkeypatch.setattr(sockets, "reserved", lambda root="": "8080")
    (remark,) = of_job(placed()).remarks
    assert remark == (
        "note: HCCL_IF_BASE_PORT=50000: HCCL listens at 50000-50031, but the kernel may give these ports to any"
        " connection first; as root, keep them free: sysctl -w net.ipv4.ip_local_reserved_ports=8080,50000-50031"
    )
    monkeypatch.setattr(sockets, "reserved", lambda root="": "8080,50000-50031")
    assert of_job(placed()).remarks == []


# ---- the kernel's ports ------------------------------------------------------------------------------


def test_what_the_kernel_says_of_its_ports(tmp_path, monkeypatch):
    monkeypatch.undo()
    folder = tmp_path / "proc/sys/net/ipv4"
    folder.mkdir(parents=True)
    assert sockets.outgoing(str(tmp_path)) is None and sockets.handed_out(range(9), str(tmp_path)) == set()
    (folder / "ip_local_port_range").write_text("100\t110\n")
    (folder / "ip_local_reserved_ports").write_text("90,101-103,110\n")
    assert sockets.handed_out(range(90, 120), str(tmp_path)) == {100, *range(104, 110)}


def test_a_server_is_seen_where_it_listens(monkeypatch):
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert sockets.listening([port]) == {port}
    assert sockets.listening([port]) == set()
