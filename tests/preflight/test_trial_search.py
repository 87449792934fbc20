"""Which hosts a trial blames, on simulated hosts: how many jobs that takes, and what it says when nothing works."""

import random

import pytest

from tools.preflight.trial import search
from tools.preflight.trial.search import Limit, Outcome


class Simulated:
    """Hosts of which some fail, some only together; `jobs`: those that ran."""

    def __init__(self, bad=(), pairs=(), needs_two=False, points_at=()):
        self.bad, self.pairs, self.needs_two, self.points_at, self.jobs = set(bad), pairs, needs_two, points_at, []

    def run(self, hosts):
        assert len(set(hosts)) == len(hosts) and hosts not in self.jobs
        self.jobs.append(hosts)
        alone = self.bad & set(hosts) and (len(hosts) > 1 or not self.needs_two)
        fails = alone or any({one, other} <= set(hosts) for one, other in self.pairs)
        return Outcome(passed=not fails, why=f"job {len(self.jobs)}", suspects=self.points_at if fails else ())


def hosts(number):
    return [f"node{at}" for at in range(number)]


def find(number, simulated, jobs=None):
    limit = Limit(jobs=jobs or search.most_jobs(number), until=10, clock=lambda: 0)
    return search.find(hosts(number), simulated.run, limit)


def test_hosts_that_work_take_one_job():
    found = find(64, Simulated())
    assert (found.faults, found.left, found.jobs, found.common, found.unknown) == ([], hosts(64), 1, False, ())


@pytest.mark.parametrize("number", [2, 3, 7, 64, 1024])
@pytest.mark.parametrize("needs_two", [False, True], ids=["alone", "only beside others"])
def test_one_bad_host_is_found_in_logarithmic_jobs(number, needs_two):
    bad = f"node{random.Random(number).randrange(number)}"
    found = find(number, Simulated([bad], needs_two=needs_two))
    if needs_two and number == 2:  # nobody knows which of the two
        assert [fault.hosts for fault in found.faults] == [("node0", "node1")]
        return
    assert [fault.hosts for fault in found.faults] == [(bad,)]
    assert found.left == [host for host in hosts(number) if host != bad] and not found.common
    assert found.faults[0].paired not in ("", bad) or number == 2
    assert found.jobs <= 5 + (6 if needs_two else 2) * (number - 1).bit_length()


def test_a_host_at_which_the_job_points_takes_few_jobs():
    found = find(1024, Simulated(["node700"], points_at=["node700"]))
    assert [fault.hosts for fault in found.faults] == [("node700",)] and found.jobs == 4


def test_a_wrong_pointer_costs_a_job_and_no_more():
    found = find(64, Simulated(["node7"], points_at=["node8"]))
    assert [fault.hosts for fault in found.faults] == [("node7",)]


def test_several_bad_hosts_are_all_found():
    found = find(64, Simulated(["node3", "node40", "node63"]))
    assert sorted(fault.hosts[0] for fault in found.faults) == ["node3", "node40", "node63"]
    assert len(found.left) == 61


@pytest.mark.parametrize("pair", [("node1", "node2"), ("node0", "node15"), ("node6", "node9")])
def test_two_hosts_that_fail_only_together_are_a_pair_and_one_of_them_goes(pair):
    found = find(16, Simulated(pairs=[pair]))
    assert [fault.hosts for fault in found.faults] == [pair] and found.faults[0].paired == ""
    assert found.left == [host for host in hosts(16) if host != pair[1]]


def test_a_host_that_fails_beside_every_other_is_alone_to_blame():
    found = find(8, Simulated(pairs=[("node5", f"node{at}") for at in range(8) if at != 5]))
    assert [fault.hosts for fault in found.faults] == [("node5",)] and found.faults[0].paired


@pytest.mark.parametrize("number", [1, 3, 64])
@pytest.mark.parametrize("needs_two", [False, True])
def test_where_all_fail_the_cause_is_common_and_the_search_gives_up(number, needs_two):
    if number == 1 and needs_two:
        return
    found = find(number, Simulated(hosts(number), needs_two=needs_two))
    assert found.common or number == 1
    assert found.jobs <= 30 and (needs_two or not found.left)


def test_at_the_limit_the_rest_is_unknown():
    found = find(64, Simulated(["node3"]), jobs=4)
    assert (found.faults, found.left, found.jobs) == ([], (), 4) and found.unknown == hosts(64)


def test_at_the_end_of_the_time_no_job_begins():
    simulated = Simulated(["node3"])
    found = search.find(hosts(8), simulated.run, Limit(jobs=50, until=1, clock=lambda: len(simulated.jobs)))
    assert len(simulated.jobs) == 1 and found.unknown == hosts(8)
