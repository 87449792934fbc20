"""What mpirun and srun need of this host for many hosts, and the lines where it is too little."""

import os
import resource

import pytest
from launching import request

from hccl_tools.common.refusal import Refusal
from tools.launch.engines.facts import LocalFacts
from tools.launch.engines.placement import Placement
from tools.launch.hosts import host_limits


def placement(hosts, ranks=1):
    """`ranks` ranks on each of `hosts` hosts, of which none is this one."""
    names = [f"10.99.{number // 250}.{number % 250}" for number in range(hosts) for _ in range(ranks)]
    return Placement(
        ranks=[(rank, 0) for rank in range(len(names))], world=len(names), hosts=names, engine=LocalFacts()
    )


def limits(monkeypatch, files=(-1, -1), processes=(-1, -1)):
    found = {resource.RLIMIT_NOFILE: files, resource.RLIMIT_NPROC: processes}
    monkeypatch.setattr(resource, "getrlimit", found.__getitem__)
    monkeypatch.setattr(host_limits, "_PIDS", "/no/such/folder/pids.")


def lines(engine, placed):
    with pytest.raises(Refusal) as refused:
        host_limits.check(request(engine=engine), placed)
    assert refused.value.status == 78
    return refused.value.lines


def passes(engine, placed):
    host_limits.check(request(engine=engine), placed)
    return True


def test_the_least_number_of_open_files_is_that_which_was_measured(monkeypatch):
    """mpirun 4.1.4 and 5.0.11 started 8 hosts, this one with one rank among them, with 38 open files, not with 36."""
    placed = placement(7)
    placed = placed.replace(hosts=[*placed.hosts, "127.0.0.1"], ranks=[*placed.ranks, (7, 0)], world=8)
    limits(monkeypatch, (38, 38))
    assert passes("mpirun", placed)
    limits(monkeypatch, (37, 4096))
    assert lines("mpirun", placed) == ("ulimit -n is 37; for 8 hosts mpirun needs 38 open files; type: ulimit -n 4096",)


def test_a_thousand_hosts_need_more_than_the_usual_limit(monkeypatch):
    limits(monkeypatch, (1024, 1 << 20))
    assert passes("mpirun", placement(900, 8))
    (line,) = lines("mpirun", placement(1000, 8))
    assert line == "ulimit -n is 1024; for 1000 hosts mpirun needs 1028 open files; type: ulimit -n 1048576"
    limits(monkeypatch, (1024, 1024))
    assert "raise nofile in /etc/security/limits.conf to 65536 or more" in lines("mpirun", placement(1000))[0]
    limits(monkeypatch, (1024, -1))
    assert lines("mpirun", placement(1000))[0].endswith("type: ulimit -n unlimited")


def test_srun_raises_its_soft_limit_itself(monkeypatch):
    limits(monkeypatch, (20, 48))
    assert passes("srun", placement(32))
    assert "ulimit -Hn is 48; for 33 nodes srun needs 49 open files" in lines("srun", placement(33))[0]


def test_one_host_and_other_engines_need_nothing(monkeypatch):
    limits(monkeypatch, (1, 1), (1, 1))
    assert passes("mpirun", placement(1, 8)) and passes("local", placement(500)) and passes("mpirun", placement(0))


def test_processes_count_with_those_that_run(monkeypatch):
    limits(monkeypatch, processes=(1000, 1000))
    monkeypatch.setattr(host_limits, "_running", lambda: 500)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert passes("mpirun", placement(484))
    (line,) = lines("mpirun", placement(485))
    assert "ulimit -u is 1000, and 500 processes and threads of yours run; for 485 hosts mpirun starts 501 more" in line
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert passes("mpirun", placement(485))


def test_the_control_group_counts_too(monkeypatch, tmp_path):
    limits(monkeypatch)
    monkeypatch.setattr(host_limits, "_PIDS", f"{tmp_path}/pids.")
    (tmp_path / "pids.max").write_text("512\n")
    (tmp_path / "pids.current").write_text("100\n")
    assert passes("mpirun", placement(396))
    (line,) = lines("mpirun", placement(397))
    assert "this container may have 512 processes and has 100; for 397 hosts mpirun starts 413 more" in line
    (tmp_path / "pids.max").write_text("max\n")
    assert passes("mpirun", placement(397))


def test_the_processes_of_this_user_are_counted_with_their_threads():
    assert 1 <= host_limits._running() < 1 << 22
