"""What a launcher makes of the verdicts that come from the other hosts, in the order in which they may come."""

from types import SimpleNamespace

import pytest

from tools.features.hosts_attempts import HostsAttempts
from tools.supervise.events import Heard
from tools.supervise.stopping import RUNNING


@pytest.fixture
def host():
    """This host's part in a job whose attempt 0 has failed here; what the user reads is in `host.run.told`."""
    told, ordered = [], []
    stopping = SimpleNamespace(state=RUNNING, running=True, signal="", begun=[])
    stopping.begin = lambda asks=False: stopping.begun.append(True)
    failed = SimpleNamespace(first=object())
    limits, members = SimpleNamespace(reached=""), SimpleNamespace(ranks_left=[])
    supervisor = SimpleNamespace(stopping=stopping, judge=failed, members=members, limits=limits)
    world = SimpleNamespace(await_end=lambda pid, seconds: True)
    hooks = SimpleNamespace(what_failed=lambda: "rank 1 failed", why_not_ready=lambda: "")
    feature = HostsAttempts(
        SimpleNamespace(
            told=told, say=told.append, supervisor=supervisor, hooks=hooks, world=world, exit_status=lambda: 3
        )
    )
    feature._beside = SimpleNamespace(order=ordered.append, pid=1, end_orders=lambda: None, wake=lambda: None)
    feature.ordered = ordered
    feature.stops()
    return feature


def hears(host, line):
    host.heard(Heard(host.name, line))


def test_a_host_that_failed_begins_again_with_the_others(host):
    hears(host, "again 0 3 127.0.0.2 rank 1 failed")
    assert (host.others_again(), host.others_end(), host.run.told) == (True, False, [])
    host.again(1)
    assert (host.others_again(), host.others_status()) == (False, 0)


def test_another_host_ends_the_job_before_this_one_has_come_to_its_pause(host):
    hears(host, "again 0 3 127.0.0.2 rank 1 failed")
    hears(host, "end 0 143 127.0.0.3 SIGTERM has stopped its launcher")
    assert not host.others_end()  # so that this host's pause begins, which the end of the job then ends
    host.again(1)
    assert (host.others_end(), host.others_status(), host.others_host()) == (True, 143, "127.0.0.3")
    assert host.run.told == ["127.0.0.3: SIGTERM has stopped its launcher"]
    assert host.run.supervisor.stopping.begun


def test_the_failure_of_this_host_ends_the_job(host):
    hears(host, "end 0 3 127.0.0.2 rank 1 failed")
    assert (host.others_end(), host.others_status(), host.run.told) == (True, 0, [])


def test_the_host_of_rank_0_has_counted_the_restarts_of_all_hosts(host):
    hears(host, "again 0 3 127.0.0.2 rank 1 failed")
    hears(host, "restart 1 2")
    assert (host.in_vain(), host.others_end(), host.why_not_ready()) == (2, False, "")
    host.again(1)
    assert host.in_vain() == 0


def test_another_restart_would_not_help_any_host(host):
    hears(host, "again 0 3 127.0.0.2 rank 1 failed")
    hears(host, "over 0 2 no further step after 2 restarts")
    hears(host, "over 0 3 again")
    assert (host.in_vain(), host.others_end()) == (2, True)
    assert host.why_not_ready() == "no further step after 2 restarts"
    assert host.run.told == ["no further step after 2 restarts; the job ends"]


@pytest.mark.parametrize("before", [True, False])
def test_a_signal_while_another_hosts_failure_ends_the_attempt_is_told(host, before):
    """Otherwise the others hear only that this launcher has ended."""
    host.again(1)
    host.run.supervisor.judge.first = None
    host.ordered.clear()
    if before:
        hears(host, "again 1 3 127.0.0.2 rank 1 failed")
    host.run.supervisor.stopping.signal = "TERM"
    host.stops()
    host.finishing()
    assert host.ordered == ["stop 3 SIGTERM has stopped its launcher", "leave"]


def test_a_signal_after_the_job_has_ended_is_not_told(host):
    host.ordered.clear()
    hears(host, "end 0 143 127.0.0.3 SIGTERM has stopped its launcher")
    host.run.supervisor.stopping.signal = "TERM"
    host.finishing()
    assert host.ordered == ["leave"]
