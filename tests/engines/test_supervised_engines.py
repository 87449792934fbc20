"""What the supervisor decides about engines, limits and many ranks, in a world without processes."""

import os
import signal
import sys
from types import SimpleNamespace

import pytest
from supervise.fake_job import IN_KERNEL, KILL, START, STUBBORN, TERM, Job

from tools.launch import life
from tools.supervise import events
from tools.supervise.limits import Limits
from tools.supervise.members import Member

# ---- an engine that starts the ranks ---------------------------------------------------------------------------------


def test_an_engine_gets_the_order_to_stop_each_second_and_sigkill_after_the_agents_grace_time():
    job = Job(2, grace=5, name="mpirun", way=3.0, behaves={"mpirun": STUBBORN})
    job.world.at(1, events.Began([("0", 500, "there"), ("1", 501, "there")]))
    job.world.at(10, events.Ended([("1", 3)]))
    assert (job.run(), job.hooks.told) == (3, [("1", False)])
    times = [when for when, word in job.engine.orders if word == "stop"]
    assert times[0] == 10.0 and len(times) == 8
    assert all(1.0 <= later - earlier < 1.2 for earlier, later in zip(times, times[1:]))
    assert job.world.sent(TERM) == {}  # SIGTERM would make mpirun kill the agents
    assert 18.0 <= job.world.sent(KILL)[99] < 18.2
    assert job.statuses() == {"0": 255, "1": 3, "mpirun": 137}


def test_the_ranks_are_ordered_to_stop_and_the_engine_ends_with_them():
    job = Job(2, name="srun", way=3.0)
    job.world.at(10, events.Ended([("1", 3)]))
    job.world.at(10.5, events.Ended([("0", 143)]))
    job.world.ends(10.6, "srun", 0)
    assert (job.run(), job.ran(), job.engine.orders) == (3, 10.6, [(10.0, "stop")])


def test_ranks_about_which_the_engine_said_nothing_are_lost_and_the_first_has_failed():
    job = Job(3, name="mpirun", way=3.0)
    job.world.at(4, events.Ended([("0", 0)]))
    job.world.ends(5, "mpirun", 0)
    assert (job.run(), job.hooks.told) == (255, [("1", False)])
    assert [(member.status, member.lost) for member in job.supervisor.members.ranks()] == [
        (0, False),
        (255, True),
        (255, True),
    ]


@pytest.mark.parametrize(("status", "exit_code", "failed"), [(0, 255, "0"), (137, 137, "imports"), (1, 1, "imports")])
def test_a_starter_that_ends_before_the_ranks_have_begun_ends_the_job(status, exit_code, failed):
    job = Job(2, starter="imports", scheduler=True)
    job.world.ends(3, "imports", status)
    assert (job.run(), job.hooks.told) == (exit_code, [(failed, False)])
    assert job.statuses() == {"scheduler": 143, "imports": status, "0": 255, "1": 255}


def test_a_starter_that_ends_when_the_ranks_have_begun_ends_nothing_and_its_code_is_the_engines():
    job = Job(2, starter="imports", status_of=0)
    for rank, member in enumerate(job.supervisor.members.ranks()):
        job.world.at(2, lambda member=member, rank=rank: job.begin(member, 200 + rank))
    job.world.ends(3, "imports", 137)
    job.world.ends(5, "0", 0)
    job.world.ends(7, "1", 4)
    assert (job.run(), job.hooks.told) == (4, [("1", False)])
    assert job.statuses() == {"imports": 0, "0": 0, "1": 4}


def test_a_stop_before_the_ranks_have_begun_ends_the_starter():
    job = Job(2, starter="imports")
    job.world.at(1, events.Signalled(signal.SIGTERM))
    assert (job.run(), job.hooks.told, job.ran()) == (143, [], 1.0)
    assert job.statuses() == {"imports": 143, "0": 255, "1": 255}


def test_an_engine_that_fails_has_failed_itself():
    job = Job(2, name="mpirun", way=3.0)
    job.world.ends(5, "mpirun", 1)
    assert (job.run(), job.hooks.told) == (1, [("mpirun", False)])


def test_an_engine_that_ends_with_0_although_it_has_lost_a_host_has_failed():
    job = Job(2, name="mpirun", way=3.0, lost="node1")
    job.world.ends(5, "mpirun", 0)
    assert (job.run(), job.hooks.told) == (255, [("mpirun", False)])
    job = Job(1, name="mpirun", way=3.0, lost="node1")  # it is not asked when all ranks have ended
    job.world.at(4, events.Ended([("0", 0)]))
    job.world.ends(5, "mpirun", 0)
    assert (job.run(), job.statuses()) == (0, {"0": 0, "mpirun": 0})


def test_an_engine_that_hides_a_failure_counts_with_it():
    job = Job(1, name="mpirun", way=3.0, status_of=3)
    job.world.at(4, events.Ended([("0", 143)], False))
    job.world.ends(5, "mpirun", 0)
    assert (job.run(), job.hooks.told) == (3, [("mpirun", False)])


def test_ends_that_the_engine_itself_has_brought_about_are_no_failures():
    job = Job(2, name="mpirun", way=3.0)
    job.world.at(4, events.Ended([("0", 143), ("1", 1)], False))
    job.world.ends(5, "mpirun", 6)
    assert (job.run(), job.hooks.told) == (6, [("mpirun", False)])


def test_a_rank_that_begins_after_the_order_to_stop_is_stopped():
    job = Job(2, name="msrun", tells_ends=True)
    job.world.ends(5, "msrun", 4)
    job.told(5, ("0", 500))
    assert job.run() == 4
    assert job.world.sent(TERM)[500] == 5.0


def test_a_rank_that_begins_after_sigkill_is_killed():
    job = Job(2, grace=1, name="msrun", tells_ends=True, behaves={"0": STUBBORN, "msrun": IN_KERNEL})
    job.world.at(5, events.Signalled(TERM))
    job.told(7, ("0", 500))
    job.supervisor.run()
    assert 7.0 <= job.world.sent(KILL)[500] < 7.2


# ---- ranks whose agents were killed ----------------------------------------------------------------------------------


def test_a_rank_whose_agent_and_watcher_were_killed_is_found_after_two_seconds():
    job = Job(2, name="msrun", tells_ends=True)
    job.told(1, ("0", 500), ("1", 501))
    job.world.at(20, lambda: job.world._end("1"))
    assert (job.run(), job.hooks.told) == (137, [("1", False)])
    assert 22.0 <= job.ran() <= 35.0


def test_a_rank_whose_end_is_only_told_late_ends_with_its_own_code():
    job = Job(1, name="msrun", tells_ends=True)
    job.told(1, ("0", 500))
    job.world.at(15, lambda: job.world._end("0"))
    job.world.at(22, events.Ended([("0", 3)]))  # seen as gone at 21
    assert (job.run(), job.hooks.told) == (3, [("0", False)])


def test_ranks_of_other_hosts_are_never_taken_for_gone():
    job = Job(1, name="mpirun", way=3.0)
    job.world.at(1, events.Began([("0", 500, "there")]))
    job.world.at(600, events.Ended([("0", 0)]))
    job.world.ends(600, "mpirun", 0)
    assert (job.run(), job.ran()) == (0, 600.0)


# ---- the engine itself ends the job ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grace", "kill_wait", "killed_after", "told"),
    [(10, 30, 13, False), (10, 14, 11, False), (10, 10, 7, True), (60, 30, 27, True), (10, 4, 1, True)],
)
def test_after_scancel_the_report_comes_before_slurm_kills_everything(grace, kill_wait, killed_after, told):
    job = Job(2, grace=grace, name="srun", way=3.0, behaves={"srun": STUBBORN})
    for seconds in (5, 5.1, 5.2):  # each agent reports it
        job.world.at(seconds, events.Cancelled(kill_wait, "Slurm kills"))
    job.world.at(5.3, events.Signalled(TERM))  # and it may come to us, too: no second signal
    assert (job.run(), job.supervisor.stopped_by()) == (143, "SIGTERM")
    assert killed_after <= job.world.sent(KILL)[99] - 5 < killed_after + 0.2
    assert job.said == ["SIGTERM: stopping all ranks (a second signal kills them at once)", "Slurm kills"][: 1 + told]


def test_scancel_during_a_stop_makes_the_grace_time_shorter_and_leaves_the_code():
    job = Job(2, grace=60, name="srun", way=3.0, behaves={"srun": STUBBORN})
    job.world.at(5, events.Ended([("1", 3)]))
    job.world.at(6, events.Cancelled(10, "Slurm kills"))
    assert (job.run(), job.said) == (3, ["Slurm kills"])
    assert 13 <= job.world.sent(KILL)[99] < 13.2
    hooks = SimpleNamespace(others_end=lambda: False, others_again=lambda: False)
    assert not life._has_failed(SimpleNamespace(supervisor=job.supervisor, hooks=hooks))  # so there is no restart


def test_ctrl_c_twice_kills_at_once_also_after_scancel():
    job = Job(1, grace=60, name="srun", way=3.0, behaves={"srun": STUBBORN})
    job.world.at(5, events.Cancelled(600, ""))
    job.world.at(6, events.Signalled(signal.SIGINT))
    assert (job.run(), job.ran()) == (143, 6.0)


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_the_timeout_ends_the_job_with_124_whatever_the_ranks_say():
    job = Job(2, timeout=30, behaves={"1": {TERM: 3}})
    assert (job.run(), job.hooks.told, job.supervisor.stopped_by()) == (124, [], "timeout")
    assert 30 <= job.ran() < 31.2
    assert job.said == ["the job has run for 30 s, its --timeout: stopping all ranks"]


def test_a_failure_before_the_timeout_decides_and_a_signal_after_it_does_not():
    job = Job(2, timeout=30, grace=60, behaves={"0": STUBBORN})
    job.world.ends(29.5, "1", 3)
    assert (job.run(), job.supervisor.stopped_by()) == (3, "")
    job = Job(2, timeout=30, grace=20, behaves={"0": STUBBORN})
    job.world.at(40, events.Signalled(TERM))
    assert (job.run(), job.supervisor.stopped_by()) == (124, "timeout")


def test_the_timeout_counts_over_all_attempts():
    job = Job(2, timeout=30)
    job.world.ends(20, "1", 3)
    job.run()
    job.supervisor.again()
    job.start(Member("0", "rank_0.log", 0, 0), 200)
    assert (job.run(), job.supervisor.limits.reached) == (124, "timeout")
    assert 30 <= job.ran() < 31.2


@pytest.fixture
def logs(tmp_path):
    """The logs of two ranks; logs.write(N) adds a line to one."""
    paths = [str(tmp_path / f"rank_{rank}.log") for rank in range(2)]

    class Logs(list):
        def write(self, rank):
            with open(self[rank], "a") as file:
                file.write("line\n")

    found = Logs(paths)
    for rank in range(2):
        found.write(rank)
    return found


def test_logs_that_stand_still_are_a_hang(logs):
    job = Job(2, hang=60)
    job.supervisor.limits.watch(logs)
    for seconds in range(10, 100, 10):
        job.world.at(seconds, lambda: logs.write(1))
    assert (job.run(), job.hooks.steps["hangs"], job.supervisor.stopped_by()) == (124, 1, "hang")
    assert 150 <= job.ran() < 160
    assert job.said[0].startswith("no rank has written to its log for 60 s, the --hang_timeout: saving the stacks")
    assert job.world.sent(TERM)[100] == job.world.sent(TERM)[101]


def test_a_step_of_the_machines_clock_is_no_hang_and_hides_none(logs):
    job = Job(2, hang=60)
    job.supervisor.limits.watch(logs)
    job.world.at(30, lambda: os.utime(logs[0], (4e9, 4e9)))
    job.world.at(80, lambda: os.utime(logs[0], (1, 1)))
    assert job.run() == 124
    assert 140 <= job.ran() < 150


def test_logs_of_other_hosts_grow_by_what_agents_tell(logs):
    job = Job(2, hang=60)
    job.supervisor.limits.watch(logs)
    for seconds in range(10, 200, 10):
        job.world.at(seconds, events.LogGrew("1"))
    assert job.run() == 124
    assert 250 <= job.ran() < 260


def test_ranks_that_hang_before_they_make_their_logs_hang(tmp_path):
    job = Job(2, hang=60)
    job.supervisor.limits.watch([str(tmp_path / "none_0"), str(tmp_path / "none_1")])
    assert (job.run(), 60 <= job.ran() < 70) == (124, True)


def test_logs_that_nobody_sees_say_nothing_about_a_hang(logs):
    job = Job(2, hang=60)
    job.supervisor.limits.watch(logs)

    def rotate():
        os.rename(logs[0], logs[0] + ".1")
        logs.write(0)

    job.world.at(10, rotate)
    job.world.ends(500, "0", 0)
    job.world.ends(500, "1", 0)
    assert job.run() == 0
    assert job.said == [
        "logs of ranks were removed, moved or replaced; so --hang_timeout cannot tell whether the ranks work, and does "
        "not end the job"
    ]


def test_a_disk_that_takes_nothing_says_nothing_about_a_hang(logs):
    job = Job(2, hang=60)
    problem = ["the disk is full"]
    job.supervisor.limits = Limits(0, 60, job.world.now, job.said.append, lambda: problem[0])
    job.supervisor.limits.watch(logs)
    job.world.at(300, lambda: problem.__setitem__(0, ""))
    assert job.run() == 124
    assert 300 <= job.ran() < 370
    assert [line.partition(";")[0] for line in job.said][0] == "the disk is full"
    assert len(job.said) == 2


def test_a_limit_or_a_signal_ends_a_wait_between_two_attempts():
    job = Job(0, timeout=30)
    assert not job.supervisor.wait_until(lambda: False)
    assert (job.supervisor.exit_status(), 30 <= job.ran() < 31) == (124, True)
    job = Job(0)
    job.world.at(5, events.Signalled(signal.SIGINT))
    assert not job.supervisor.wait_until(lambda: False)
    assert (job.supervisor.exit_status(), job.ran()) == (130, 5.0)
    job = Job(0)
    assert job.supervisor.wait_until(lambda: job.world.time >= START + 7)


# ---- many ranks ------------------------------------------------------------------------------------------------------


def calls(do):
    """How many functions are called while do() runs: no machine is too busy for that."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        do()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("how", ["at once", "one by one", "fail", "local"])
def test_the_work_for_thousands_of_ends_grows_with_their_number(how):
    def work(ranks):
        job = Job(ranks, keep_going=how == "fail", **({} if how == "local" else {"name": "mpirun", "way": 3.0}))
        rows = [(str(rank), 3 if how == "fail" else 0) for rank in range(ranks)]
        if how == "local":
            job.world.at(1, job.world.living.clear, events.Ended(rows))
        elif how == "one by one":
            for row in rows:
                job.world.at(1, events.Ended([row]))
        else:
            job.world.at(1, events.Began([(name, 1, "there") for name, _ in rows]), events.Ended(rows))
        if how != "local":
            job.world.ends(2, "mpirun", 0)
        return calls(job.run)

    work(10)
    assert work(4000) < 4.5 * work(1000)
