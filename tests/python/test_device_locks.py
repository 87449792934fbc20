"""Who has which devices; whole launches that meet are in tests/bats/limits.bats."""

import os
import time

import pytest

from tools.launch import device_locks


@pytest.fixture
def locks(tmp_path, monkeypatch):
    """locks("job", 4, 5): a job that takes these devices; (its open file, the Holders in its way)."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("LAUNCH_LOCKS", str(folder))
    files = []

    def take(job, *devices):
        file = open(folder / f"{job}.lock", "wb")  # noqa: SIM115 - it stays open: that is the lock
        files.append(file)
        return file, device_locks.take(file.fileno(), job, 4711, devices)

    yield take
    for file in files:
        file.close()


def test_devices_that_nobody_has_can_be_taken_and_jobs_on_others_do_not_meet(locks):
    assert locks("one", 4, 5)[1] == []
    (holder,) = device_locks.held()
    assert (holder.job, holder.devices, holder.pid) == ("one", [4, 5], 4711)
    assert locks("two", 6, 7)[1] == []
    assert [holder.job for holder in device_locks.held()] == ["one", "two"]


def test_a_device_that_is_taken_names_its_job_and_since_when(locks):
    locks("one", 4, 5)
    _, holders = locks("two", 5, 6)
    assert [holder.job for holder in holders] == ["one"]
    assert device_locks.words(holders[0], [5, 6]).startswith("device 5 in use by one (process 4711 of ")
    assert len(device_locks.held()) == 1  # the second one took nothing


def test_the_end_of_the_job_frees_its_devices_and_its_file_goes(locks):
    file, _ = locks("one", 4)
    file.close()
    assert locks("two", 4)[1] == []
    assert not os.path.exists(file.name)


def test_a_job_that_is_about_to_take_its_devices_keeps_its_file(locks):
    with open(os.path.join(device_locks.folder(), "early"), "wb") as early:
        assert locks("one", 4)[1] == []
        assert device_locks.take(early.fileno(), "early", 1, [4])
        assert device_locks.take(early.fileno(), "early", 1, [5]) == []
        assert len(device_locks.held()) == 2


def test_an_empty_file_from_yesterday_goes(locks):
    old = os.path.join(device_locks.folder(), "old")
    open(old, "wb").close()
    os.utime(old, (time.time() - 100_000,) * 2)
    locks("one", 4)
    assert not os.path.exists(old)


@pytest.mark.parametrize("junk", [b"\xff\x00", b"{}", b'{"devices": 4}', pytest.param(b"[" * 50_000, id="deep")])
def test_a_held_file_that_is_none_of_ours_is_passed_over(locks, junk):
    import fcntl

    with open(os.path.join(device_locks.folder(), "junk"), "wb+") as file:
        file.write(junk)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        assert locks("one", 4)[1] == []


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("LAUNCH_LOCKS", str(tmp_path / "link"))
    with pytest.raises(OSError):
        device_locks.held()


def test_waiting_for_a_job_that_has_ended_meanwhile_returns(locks):
    file, _ = locks("one", 4)
    (holder,) = device_locks.held()
    file.close()
    device_locks.wait_for(holder)
    os.unlink(holder.path)
    device_locks.wait_for(holder)
