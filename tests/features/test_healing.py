"""Ranks that TaskD kills and starts again inside msrun: what the supervisor decides, in a world without processes."""

import json

import pytest
from supervise.fake_job import TERM, Job

from tools.engines.agent_lines import AgentLines
from tools.launch import record
from tools.output import report
from tools.supervise import events
from tools.supervise.events import Began, Ended, Handed
from tools.supervise.members import Member


@pytest.fixture
def job():
    """msrun with two ranks, which TaskD has."""
    job = Job(2, name="msrun", tells_ends=True)
    job.world.at(1, events.Handed())
    job.told(2, ("0", 500), ("1", 501))
    return job


def ranks(job):
    """{rank: the exit statuses of all its starts}"""
    return {m.name: [one.status for one in (*m.earlier, m)] for m in job.supervisor.members.ranks()}


def test_a_rank_that_fails_and_is_started_again_ends_nothing(job):
    job.world.ends(10, "1", 9)
    job.told(13, ("1", 601))
    job.world.ends(20, "0", 0)
    job.world.ends(20, "1", 0)
    job.world.ends(25, "msrun", 0)
    assert (job.run(), job.hooks.told, job.hooks.steps["healed"]) == (0, [], 2)
    assert ranks(job) == {"0": [0], "1": [9, 0]}
    assert job.ran() == 25.0


def test_without_taskd_the_same_failure_ends_the_job():
    job = Job(2, name="msrun", tells_ends=True)
    job.told(2, ("0", 500), ("1", 501))
    job.world.ends(10, "1", 9)
    assert (job.run(), job.hooks.told) == (9, [("1", False)])


def test_the_table_and_the_outcome_have_every_start_in_order(job):
    for start in range(3):
        job.world.ends(10 + 10 * start, "1", 9)
        job.told(13 + 10 * start, ("1", 601 + start))
    job.world.ends(50, "0", 0)
    job.world.ends(50.5, "1", 0)
    job.world.ends(55, "msrun", 0)
    assert job.run() == 0
    lines = report.table(job.supervisor.members.ranks(), None, (), stopping=True)
    assert [line.split()[0] for line in lines[1:]] == ["0", "1", "1", "1", "1"]
    assert ["restarted" in line for line in lines[1:]] == [False, True, True, True, False]
    found = record.outcome_of_attempt(job.supervisor.members, None, status=0, stopped_by="", logs=".")
    found = json.loads(json.dumps(found))["members"]["1"]
    assert [(one["status"], one["seconds"], one["pid"]) for one in (*found["earlier"], found)] == [
        (9, 8.0, 501),
        (9, 7.0, 601),
        (9, 7.0, 602),
        (0, 17.5, 603),
    ]


def test_with_many_ranks_the_table_names_those_that_were_started_again():
    job = Job(40, name="msrun", tells_ends=True)
    job.world.at(1, events.Handed())
    job.told(2, *((str(rank), 500 + rank) for rank in range(40)))
    job.world.ends(10, "7", 9)
    job.told(13, ("7", 700))
    for rank in range(40):
        job.world.ends(20, str(rank), 0)
    job.world.ends(25, "msrun", 0)
    assert job.run() == 0
    lines = report.table(job.supervisor.members.ranks(), None, (), stopping=True)
    assert lines[1:] == ["0: ranks 0-39", "restarted: rank 7"]


@pytest.mark.parametrize(
    ("ends", "first", "status"),
    [
        ([(10, "1", 9), (15, "0", 137)], "1", 9),
        ([(10, "1", 137), (15, "0", 137)], "1", 137),  # the kernel's OOM killer, and five seconds later TaskD
        ([(15, "0", 137), (15.1, "1", 137)], "msrun", 1),  # TaskD has killed both
        ([], "msrun", 1),
    ],
)
def test_msruns_own_failure_ends_the_job_and_the_rank_that_was_not_killed_with_the_others_is_named(
    job, ends, first, status
):
    for row in ends:
        job.world.ends(*row)
    job.world.ends(16, "msrun", 1)
    assert (job.run(), job.hooks.told) == (status, [(first, False)])
    assert job.supervisor.judge.first.name == first


def test_msrun_that_a_signal_has_ended_has_failed_itself_although_a_rank_failed_before(job):
    job.world.ends(10, "1", 9)
    job.world.ends(16, "msrun", 143)
    job.told(16.1, ("1", 601))
    assert (job.run(), job.hooks.told) == (143, [("msrun", False)])


def test_when_msrun_has_ended_with_0_a_failure_counts_again(job):
    job.world.ends(5, "msrun", 0)
    job.world.ends(10, "1", 9)
    assert (job.run(), job.hooks.told) == (9, [("1", False)])


def test_msrun_that_never_ends_is_stopped_when_all_ranks_have_ended_with_0(job):
    job.world.ends(20, "0", 0)
    job.world.ends(20, "1", 0)
    assert job.run() == 0
    assert job.said == ["all ranks have ended with 0, but msrun goes on: stopping it"]
    assert 80 <= job.ran() < 100


def test_msrun_is_not_stopped_while_a_rank_waits_for_its_next_start(job):
    job.world.ends(20, "0", 0)
    job.world.ends(20, "1", 9)
    job.told(4000, ("1", 601))
    job.world.ends(4010, "1", 0)
    job.world.ends(4020, "msrun", 0)
    assert (job.run(), ranks(job)) == (0, {"0": [0], "1": [9, 0]})


def test_a_group_of_an_earlier_start_that_still_lives_is_stopped_with_the_job(job):
    job.world.signal_leftovers = lambda group: None  # which takes time
    job.world.ends(10, "1", 9, left_behind=True)
    job.told(11, ("1", 601))
    job.world.at(12, events.Signalled(TERM))
    assert job.run() == 143
    assert {500, 501, 601} <= set(job.world.sent(TERM))


def test_a_hang_is_counted_anew_when_a_rank_starts_again(tmp_path):
    log = tmp_path / "rank_1.log"
    log.write_text("step 1\n")
    job = Job(2, name="msrun", tells_ends=True, hang=30)
    job.world.at(1, events.Handed(), lambda: job.supervisor.limits.watch([str(log)]))
    job.told(2, ("0", 500), ("1", 501))
    job.world.ends(25, "1", 9)
    job.told(50, ("1", 601))
    for rank in ("0", "1"):
        job.world.ends(75, rank, 0)
    job.world.ends(76, "msrun", 0)
    assert (job.run(), job.supervisor.limits.reached) == (0, "")


def test_the_time_of_a_member_whose_start_is_told_after_its_end_is_not_negative():
    job = Job(1, name="mpirun", way=3.0)
    job.world.ends(5, "mpirun", 0)
    job.run()
    member = job.supervisor.members.get("0")
    job.supervisor.members.began(member, member.ended + 0.5, 500)
    assert member.seconds == "0.0"
    assert (
        record.outcome_of_attempt([member], None, status=0, stopped_by="", logs=".")["members"]["0"]["seconds"] == 0.0
    )


# ---- what agents tell ------------------------------------------------------------------------------------------------


def lines(tmp_path, *blocks):
    with open(tmp_path / "engine.log", "wb") as log:
        told = AgentLines(b"secret", str(tmp_path), log.fileno(), None)
        found = [event for block in (*blocks, b"") for event in told.take(block)]
    return found, (tmp_path / "engine.log").read_text()


START = b"secret start 1 501 h\n"


@pytest.mark.parametrize(
    "said",
    [
        b"secret exit 1 137 501\nsecret start 1 601 h\n",
        b"secret start 1 601 h\nsecret exit 1 137 501\n",  # the watcher of the one that was killed is late
        b"secret start 1 601 h\n",  # or it was killed, too
    ],
)
def test_the_end_of_a_start_is_before_the_next_start_whoever_tells_it_first(tmp_path, said):
    expected = [Began([("1", 501, "h")]), Ended([("1", 137)]), Began([("1", 601, "h")]), Ended([("1", 0)])]
    assert lines(tmp_path, START + said, b"secret exit 1 0 601\n") == (expected, "")
    assert lines(tmp_path, START + said + b"secret exit 1 0 601\n") == (expected, "")


def test_a_rank_that_was_killed_before_it_told_its_next_start_has_begun_and_ended(tmp_path):
    said = START + b"secret exit 1 9 501\nsecret exit 1 137 601\nsecret exit 1 137 501\n"
    expected = [Began([("1", 501, "h")]), Ended([("1", 9)]), Began([("1", 601, "")]), Ended([("1", 137)])]
    assert lines(tmp_path, said) == (expected, "")


def test_msrun_tells_that_taskd_has_the_ranks(tmp_path):
    said = b"secret handed\nsecret start 1 501 h\nsecret handed 1\n"
    assert lines(tmp_path, said) == ([Handed(), Began([("1", 501, "h")])], "secret handed 1\n")


@pytest.mark.parametrize("line", ["exit 1 3 x", "exit 1 3 4 5", "exit 1  3", "exit 1 3 -1"])
def test_an_end_of_another_form_is_the_engines(tmp_path, line):
    assert lines(tmp_path, f"secret {line}\n".encode()) == ([], f"secret {line}\n")


def test_a_rank_that_was_started_again_keeps_its_place():
    job = Job(3, name="msrun", tells_ends=True)
    member = job.supervisor.members.get("1")
    job.supervisor.members.ended(member, 9, 3.0)
    job.supervisor.members.started_again(member)
    assert [(m.name, m.status) for m in job.supervisor.members.ranks()] == [("0", None), ("1", None), ("2", None)]
    assert (job.supervisor.members.ranks_left, member.name) == (3, "1, start 1")
    assert isinstance(member, Member) and job.supervisor.members.get("1") is not member
