"""What the supervisor decides about ends, signals and the stop of a job, in a world without processes."""

import signal

import pytest
from fake_job import HELD, IN_KERNEL, KILL, STUBBORN, TERM, USR1, Job

from tools.supervise import events
from tools.supervise.members import SCHEDULER, Member

# ---- the end of a member ---------------------------------------------------------------------------------------------


def test_a_job_whose_members_end_well():
    job = Job()
    job.world.ends(5, "0", 0)
    job.world.ends(7, "1", 0)
    assert (job.run(), job.ran(), job.hooks.told, job.said) == (0, 7.0, [], [])
    assert [member.seconds for member in job.supervisor.members] == ["5.0", "7.0"]


def test_features_look_also_where_no_moment_is_without_an_event():
    job = Job(ranks=1)
    for tenth in range(100):
        job.world.at(tenth / 10, events.LogGrew("0"))
    job.world.ends(10, "0", 0)
    assert job.run() == 0
    assert 9 <= job.hooks.steps["check"] <= 12


def test_the_first_failure_decides_and_stops_the_others():
    job = Job(3)
    job.world.ends(5, "1", 3)
    assert (job.run(), job.hooks.told) == (3, [("1", False)])
    assert job.statuses() == {"0": 143, "1": 3, "2": 143}
    assert job.world.sent(TERM) == {100: 5.0, 101: 5.0, 102: 5.0}
    assert [member.failed for member in job.supervisor.members] == [False, True, False]


def test_of_failures_that_come_at_once_the_first_row_counts():
    job = Job(3)
    job.world.at(5, lambda: job.world.living.clear(), events.Ended([("2", 7), ("0", 9), ("1", 0)]))
    assert (job.run(), job.hooks.told) == (7, [("2", False)])


def test_what_a_member_leaves_in_its_group_is_ended_and_waited_for():
    job = Job(1)
    job.world.ends(5, "0", 0, left_behind=True)
    assert job.run() == 0
    assert job.world.sent(TERM, "leftovers") == {100: 5.0}


def test_a_member_that_is_no_part_of_the_job_ends_nothing():
    job = Job(1)
    job.world.at(1, events.Ended([("7", 3)]))
    job.world.ends(5, "0", 0)
    job.world.at(6, events.Ended([("0", 9)]))  # the first report counts
    assert (job.run(), job.statuses()) == (0, {"0": 0})


def test_the_scheduler_is_stopped_when_all_ranks_have_ended():
    job = Job(2, scheduler=True)
    job.world.ends(5, "0", 0)
    job.world.ends(6, "1", 0)
    assert (job.run(), job.ran(), job.hooks.told) == (0, 6.0, [])
    assert job.world.sent(TERM)[98] == 6.0


def test_a_scheduler_that_ranks_of_other_hosts_need_goes_on():
    job = Job(1, scheduler=True, shares_scheduler=True)
    job.world.ends(5, "0", 0)
    job.world.ends(60, SCHEDULER, 0)
    assert (job.run(), job.ran()) == (0, 60.0)


def test_a_scheduler_that_fails_stops_the_ranks():
    job = Job(2, scheduler=True)
    job.world.ends(5, SCHEDULER, 9)
    assert (job.run(), job.hooks.told) == (9, [(SCHEDULER, False)])


# ---- signals that hit a rank, and us ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_hits_a_rank_a_moment_before_us_is_no_failure(number):
    job = Job(2)
    job.world.ends(5, "1", 128 + number)
    job.world.at(5.25, events.Signalled(number))
    assert (job.run(), job.hooks.told, job.supervisor.judge.first) == (128 + number, [], None)
    assert job.supervisor.stopping.signal == signal.Signals(number).name[3:]
    assert job.world.sent(KILL) == {}  # it did not count as a second signal


def test_a_rank_that_a_signal_has_ended_has_failed_if_none_comes_to_us():
    job = Job(2)
    job.world.ends(5, "1", 143)
    assert (job.run(), job.hooks.told, job.said) == (143, [("1", False)], [])
    assert 5.3 <= job.world.sent(TERM)[100] < 5.4


def test_a_failure_after_it_shows_that_it_has_failed():
    job = Job(3)
    job.world.ends(5, "1", 143)
    job.world.ends(5.1, "2", 3)
    assert (job.run(), job.hooks.told) == (143, [("1", False)])


def test_the_last_rank_that_a_signal_ends_is_waited_for():
    job = Job(1)
    job.world.ends(5, "0", 143)
    job.world.at(5.2, events.Signalled(TERM))
    assert (job.run(), job.hooks.told, job.supervisor.stopping.signal) == (143, [], "TERM")


def test_sigkill_of_a_rank_is_a_failure_at_once():
    job = Job(2)
    job.world.ends(5, "1", 137)
    assert (job.run(), job.hooks.told, job.world.sent(TERM)[100]) == (137, [("1", False)], 5.0)


# ---- --keep_going ----------------------------------------------------------------------------------------------------


def test_with_keep_going_each_failure_is_told_and_the_first_is_the_exit_code():
    job = Job(3, keep_going=True)
    job.world.ends(5, "1", 3)
    job.world.ends(6, "0", 4)
    job.world.ends(60, "2", 0)
    assert (job.run(), job.ran(), job.hooks.told) == (3, 60.0, [("1", True), ("0", True)])
    assert [member.failed for member in job.supervisor.members] == [True, True, False]


def test_with_keep_going_the_scheduler_stops_the_job_unless_a_rank_has_failed_before():
    job = Job(2, keep_going=True, scheduler=True)
    job.world.ends(5, SCHEDULER, 9)
    assert (job.run(), job.hooks.told) == (9, [(SCHEDULER, False)])
    job = Job(2, keep_going=True, scheduler=True)
    job.world.ends(4, "0", 3)
    job.world.ends(5, SCHEDULER, 9)
    job.world.ends(60, "1", 0)
    assert (job.run(), job.ran(), job.hooks.told) == (3, 60.0, [("0", True), (SCHEDULER, True)])


def test_with_keep_going_a_failure_of_the_last_rank_ends_the_job():
    job = Job(2, keep_going=True, scheduler=True)
    job.world.ends(5, "0", 0)
    job.world.ends(6, "1", 3)
    assert (job.run(), job.ran(), job.hooks.told) == (3, 6.0, [("1", False)])


# ---- the stop --------------------------------------------------------------------------------------------------------


def test_what_ignores_sigterm_is_killed_after_the_grace_time():
    job = Job(3, grace=7, behaves={"0": STUBBORN})
    job.world.ends(5, "1", 3)
    assert (job.run(), job.statuses()) == (3, {"0": 137, "1": 3, "2": 143})
    assert set(job.world.sent(KILL)) == {100}
    assert 12.0 <= job.world.sent(KILL)[100] < 12.2


def test_a_second_signal_kills_at_once():
    job = Job(2, grace=60, behaves={"0": STUBBORN, "1": STUBBORN})
    job.world.at(5, events.Signalled(signal.SIGINT))
    job.world.at(6, events.Signalled(TERM))
    job.world.at(6.01, events.Signalled(TERM))
    assert (job.run(), job.ran()) == (130, 6.0)
    assert job.said == ["SIGINT: stopping all ranks (a second signal kills them at once)"]


def test_the_first_signal_during_a_stop_is_told_and_the_second_kills():
    job = Job(3, grace=60, behaves={"0": STUBBORN})
    job.world.ends(5, "1", 3)
    job.world.at(6, events.Signalled(TERM))
    job.world.at(7, events.Signalled(TERM))
    assert (job.run(), job.ran(), job.supervisor.stopped_by()) == (3, 7.0, "SIGTERM")
    assert job.said == ["SIGTERM: the ranks are already stopping (a second signal kills them at once)"]


def test_who_waits_in_the_kernel_is_given_up_and_told():
    job = Job(2, grace=2, behaves={"0": IN_KERNEL})
    job.world.ends(5, "1", 3)
    job.supervisor.run()
    assert 12.0 <= job.ran() < 12.3
    assert (job.supervisor.exit_status(), job.statuses()) == (3, {"0": 137, "1": 3})
    assert [line.partition(":")[0] for line in job.said] == ["process group 100 (rank 0) does not end on SIGKILL"]
    assert job.said[0].endswith("ps -o pid,stat,wchan:20,args -g 100")


def test_who_is_held_by_a_debugger_has_an_unknown_code_and_does_not_wait_in_the_kernel():
    job = Job(2, grace=2, behaves={"0": HELD})
    job.world.ends(5, "1", 3)
    assert job.run() == 3
    assert job.said == ["rank 0 has ended, but its exit code is unknown: a debugger holds process 100"]
    lost = job.supervisor.members.get("0")
    assert (lost.status, lost.lost, lost.group) == (255, True, None)


def test_nobody_waits_for_ranks_whose_engine_is_given_up():
    for way in (IN_KERNEL, HELD):
        job = Job(4, grace=2, name="mpirun", way=3.0, behaves={"mpirun": way})
        job.world.at(1, events.Began([(str(rank), 500 + rank, "there") for rank in range(3)]))
        job.world.at(5, events.Ended([("1", 3)]))
        job.supervisor.run()
        assert job.supervisor.exit_status() == 3
        assert [job.statuses()[str(rank)] for rank in range(4)] == [255, 3, 255, 255]


def test_the_next_attempt_begins_with_no_trace_of_the_last():
    job = Job(2)
    job.world.ends(5, "1", 3)
    job.run()
    supervisor = job.supervisor
    supervisor.again()
    assert (len(supervisor.members), supervisor.exit_status(), supervisor.stopping.running) == (0, 0, True)
    member = Member("0", "rank_0.log", 0, 0)
    job.start(member, 200)
    job.world.ends(60, "0", 0)
    assert job.run() == 0


# ---- signals for the trainers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_usr1_and_usr2_go_to_the_first_process_of_each_rank_and_to_no_scheduler(number):
    job = Job(2, scheduler=True)
    job.world.at(5, events.Signalled(number))
    job.world.ends(6, "0", 0)
    job.world.ends(6, "1", 0)
    assert job.run() == 0
    assert [line.partition(":")[0] for line in job.said] == (["SIGUSR1"] if number == USR1 else [])
    assert job.world.sent(number, "process") == {100: 5.0, 101: 5.0}
    assert job.world.sent(number) == {}


def test_ranks_of_mpirun_get_usr1_as_an_order():
    job = Job(2, name="mpirun", way=3.0)
    job.world.at(5, events.Signalled(USR1))
    job.world.ends(6, "mpirun", 0)
    assert (job.run(), job.engine.orders[0], job.world.sent(USR1, "process")) == (255, (5.0, "USR1"), {})


def test_ranks_of_msrun_get_usr1_from_us_and_msrun_does_not():
    job = Job(2, name="msrun", tells_ends=True)
    job.told(1, ("0", 500), ("1", 501))
    job.world.at(5, events.Signalled(USR1))
    for rank in "01":
        job.world.ends(6, rank, 0)
    job.world.ends(6, "msrun", 0)
    assert (job.run(), job.world.sent(USR1, "process")) == (0, {500: 5.0, 501: 5.0})


@pytest.mark.parametrize("heeds", [True, False])
def test_a_rank_that_tells_its_begin_after_usr1_gets_it_then(heeds):
    """Its agent tells through a pipe: the rank may run, and wait for the signal, before the launcher knows of it."""
    job = Job(2, name="msrun", tells_ends=True)
    job.told(1, ("0", 500))
    job.world.at(5, events.Signalled(USR1))
    job.told(6, ("1", 501))
    if not heeds:
        job.world.without_usr1.add("1")
    else:
        job.world.ends(7, "1", 0)
    job.world.ends(7, "0", 0)
    job.world.ends(8, "msrun", 0)
    assert (job.run(), job.statuses()["1"]) == ((0, 0) if heeds else (138, 143))
    sent = {501: 6.0}
    assert job.world.sent(USR1, "process") == {500: 5.0, **(sent if heeds else {})}
    assert job.world.sent(TERM, "process") == ({} if heeds else sent)


def test_a_scheduler_that_tells_its_begin_after_usr1_does_not_get_it():
    job = Job(1, name="msrun", tells_ends=True)
    job.supervisor.members.add([Member(SCHEDULER, "scheduler.log")])
    job.told(1, ("0", 500))
    job.world.at(5, events.Signalled(USR1))
    job.told(6, (SCHEDULER, 98))
    for name in ("0", SCHEDULER, "msrun"):
        job.world.ends(7, name, 0)
    assert (job.run(), job.world.sent(USR1, "process")) == (0, {500: 5.0})
