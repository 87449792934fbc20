"""Who has which devices; whole launches that meet are in tests/launch/limits.bats and locks.bats."""

import fcntl
import multiprocessing
import os
import signal
import time

import pytest
from locking import OTHER, Job, as_user, base, free_pid, start_as
from suite.needs import needs_root

from hccl_tools.common.refusal import Refusal
from tools.launch.devices import device_locks

__all__ = ["base"]


@pytest.fixture
def locks(base):
    """locks("job", 4, 5): (the Job that wants these devices, the names of the jobs in its way)."""
    jobs = []

    def take(name, *devices, pid=None):
        jobs.append(Job(base, pid))
        return jobs[-1], jobs[-1].take(*devices, name=name)

    return take


def held():
    return [(holder.job, holder.devices) for holder in device_locks.held()]


def test_devices_that_nobody_has_can_be_taken_and_jobs_on_others_do_not_meet(locks):
    assert locks("one", 5, 4, 4)[1] == []
    assert locks("two", 6, 7)[1] == []
    assert sorted(held()) == [("one", [4, 5]), ("two", [6, 7])]


def test_a_device_that_is_taken_names_its_job_and_since_when(locks):
    locks("one", 4, 5)
    assert locks("two", 5, 6)[1] == ["one"]
    (holder,) = device_locks.held()  # the second one took nothing
    words = device_locks.words(holder, [5, 6])
    assert words.startswith(f"device 5 in use by one (process {os.getpid()} of ") and words.endswith(" UTC)")


def test_the_end_of_the_job_frees_its_devices_and_its_file_goes(locks):
    job, _ = locks("one", 4, pid=free_pid())
    assert locks("two", 4)[1] == ["one"]
    assert os.path.exists(job.path)
    job.end()
    assert held() == []
    assert not os.path.exists(job.path)
    assert locks("three", 4)[1] == []


def test_the_message_says_that_the_launcher_has_ended_and_its_ranks_have_not(locks):
    job, _ = locks("one", 4, pid=free_pid())
    (holder,) = device_locks.held()
    assert f"it has ended, but one of its ranks may still run: see fuser -v {job.path})" in device_locks.words(
        holder, [4]
    )
    elsewhere = holder.replace(namespace=holder.namespace + 1)  # its process has another number here
    assert "fuser" not in device_locks.words(elsewhere, [4])


def test_a_wait_of_years_costs_nobody_a_lock(locks, base):
    """Files have no age: what is held, and what a living launch is about to hold, stays whatever the clock says."""
    first, _ = locks("first", 4)
    early = Job(base)
    waiter, in_the_way = locks("waiter", 4, pid=free_pid())
    assert in_the_way == ["first"]
    for job in (first, early, waiter):
        os.utime(job.path, (1, 1))
    assert locks("third", 4)[1] == ["first"]
    assert held() == [("first", [4])]
    first.end()
    assert waiter.take(4, name="waiter") == []
    assert early.take(5, name="early") == []
    assert sorted(held()) == [("early", [5]), ("waiter", [4])]


def test_a_job_can_ask_again_for_another_run_folder(locks):
    job, _ = locks("one", 4)
    assert job.take(4, 5, name="one-2") == []
    assert held() == [("one-2", [4, 5])]


def test_a_file_that_is_gone_is_a_refusal_and_not_a_lock_that_nobody_sees(locks, base, monkeypatch):
    job = Job(base)
    os.unlink(job.path)
    with pytest.raises(Refusal, match="start again"):
        job.take(4)
    job = Job(base)
    with open(job.path, "rb") as other:  # a launch in another container cleans up
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Refusal, match="start again"):
            job.take(4)
    job, flock = Job(base), fcntl.flock
    with monkeypatch.context() as patch, pytest.raises(Refusal, match="start again"):
        patch.setattr(fcntl, "flock", lambda *words: os.unlink(job.path) or flock(*words))  # it was faster
        job.take(4)
    job, _ = locks("first", 4)
    os.rename(job.path, job.path + "0")
    open(job.path, "w").close()
    with pytest.raises(Refusal, match="start again"):
        job.take(4)


def test_a_launch_that_stopped_while_it_wanted_a_device_is_told_as_its_holder(locks, base, monkeypatch):
    monkeypatch.setattr(device_locks, "PATIENCE", 0.1)
    stopped, _ = locks("stopped", 4)
    os.pwrite(stopped.descriptor, device_locks.ASKS.encode(), device_locks.STATE_AT)
    job, in_the_way = locks("two", 4)
    assert in_the_way == ["stopped"]
    assert held() == []
    os.pwrite(stopped.descriptor, device_locks.IDLE.encode(), device_locks.STATE_AT)
    assert job.take(4) == []


def test_waiting(locks):
    job, _ = locks("one", 4, pid=free_pid())
    (holder,) = device_locks.held()
    assert not device_locks.has_ended(holder)
    job.end()
    assert device_locks.has_ended(holder)


# ---- many at once ----------------------------------------------------------------------------------


def contend(base, devices, times, problems):
    """Takes the devices that many times, and says so if another process has one of them then."""
    marks = [os.path.join(base, f"device_{device}") for device in devices]
    while times:
        job = Job(base)
        if job.take(*devices, name=str(devices)):
            time.sleep(0.002)
        else:
            times -= 1
            for mark in marks:
                try:
                    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    problems.put(mark)
            time.sleep(0.002)
            for mark in marks:
                os.unlink(mark)
        os.unlink(job.path)
        job.end()


@pytest.mark.thorough
def test_of_launches_at_once_never_two_have_a_device_and_each_gets_its_turn(base):
    fork = multiprocessing.get_context("fork")
    problems = fork.Queue()
    wanted = ([0, 1], [1, 2], [2, 0], [0], [0, 1, 2, 3])
    workers = [fork.Process(target=contend, args=(base, devices, 20, problems)) for devices in wanted]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    late = [worker for worker in workers if worker.exitcode is None]
    for worker in late:
        worker.kill()
    assert not late
    assert problems.empty(), problems.get()
    assert [worker.exitcode for worker in workers] == [0] * len(workers)
    assert os.listdir(os.path.join(base, f"mindspore-launch-{os.geteuid()}")) == []


# ---- several users ---------------------------------------------------------------------------------


@needs_root
def test_two_users_of_a_host_see_each_others_jobs(locks, base):
    job, _ = locks("one", 4)
    assert as_user(OTHER, lambda: Job(base).take(4, 5)) == ["one"]
    assert as_user(OTHER, held) == [("one", [4])]
    (words,) = as_user(OTHER, lambda: [device_locks.words(holder, [4]) for holder in device_locks.held()])
    assert f"(process {os.getpid()} of root, since " in words

    reader, writer = os.pipe()
    theirs = start_as(
        OTHER, lambda: os.write(writer, repr(Job(base).take(5, name="theirs")).encode()) and signal.pause()
    )
    try:
        assert os.read(reader, 100) == b"[]"
        assert locks("two", 5, 6)[1] == ["theirs"]
        (holder,) = [holder for holder in device_locks.held() if holder.job == "theirs"]
        assert f" of user {OTHER}, since " in device_locks.words(holder, [5])
        assert os.path.dirname(holder.path) == f"{base}/mindspore-launch-{OTHER}"
    finally:
        os.kill(theirs, signal.SIGKILL)
        os.waitpid(theirs, 0)


@needs_root
def test_what_another_user_has_left_is_free_and_stays_as_it_is(locks, base):
    path = as_user(OTHER, lambda: (lambda job: (job.take(4), job.path))(Job(base, free_pid()))[1])
    before = os.stat(path)
    assert locks("one", 4)[1] == []
    assert (os.stat(path).st_ctime_ns, os.stat(path).st_mode) == (before.st_ctime_ns, before.st_mode)
    as_user(OTHER, device_locks.held)
    assert not os.path.exists(path)
