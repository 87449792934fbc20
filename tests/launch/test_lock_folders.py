"""What other users can put where the locks are, and what that does to us: nothing."""

import fcntl
import json
import os
import stat
import tempfile

import pytest
from locking import OTHER, Job, as_user, base
from suite.needs import needs_root

from hccl_tools.common.refusal import Refusal
from tools.launch.devices import device_locks, lock_folders

__all__ = ["base"]

GOOD = {"state": "h", "job": "planted", "devices": [4], "pid": 1, "namespace": 0, "since": 0}


@pytest.fixture
def planted(base):
    """A folder in which others plant what they like; as root it is another user's."""
    folder = os.path.join(base, "mindspore-launch-1")
    os.mkdir(folder)
    yield folder


def give_away(folder, *others):
    """Root gives all of it to another user, as it would be on a real host."""
    if os.geteuid() == 0:
        for path in (folder, *(os.path.join(folder, name) for name in os.listdir(folder)), *others):
            os.chown(path, OTHER, OTHER, follow_symlinks=False)


def jobs():
    return [holder.job for holder in device_locks.held()]


def lay(path, content):
    """Writes it, and holds it until it is garbage."""
    file = open(path, "wb+")  # noqa: SIM115 - it stays open: that is the lock
    file.write(content)
    file.flush()
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


JUNK = {
    "binary": b"\xff\x00",
    "empty": b"",
    "other": b"{}",
    "list": b"[]",
    "deep": b"[" * 50_000,
    "number": b"9" * 50_000,
    **{
        f"{key} {value!r}"[:40]: json.dumps({**GOOD, key: value}).encode()
        for key, value in [
            *[("devices", value) for value in (4, None, "4", [[4]], [-1], [1.5], [1 << 70], {"4": 4}, [None])],
            *[("pid", value) for value in (-1, 1 << 23, "1", float("nan"), None)],
            *[("since", value) for value in (-1, 1 << 60, float("inf"), float("nan"), "now")],
            *[("namespace", value) for value in (-1, None)],
            ("job", "\ud800"),
        ]
    },
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_a_held_file_that_is_none_of_ours_is_passed_over(planted, base, junk):
    file = lay(f"{planted}/1.1", junk)
    give_away(planted)
    assert Job(base).take(4) == []
    file.close()


def test_a_name_with_escape_sequences_is_shown_harmless(planted, base):
    file = lay(f"{planted}/1.1", json.dumps({**GOOD, "job": "a\x1b[2J\nb"}).encode())
    (holder,) = device_locks.held()
    assert r"in use by a\x1b[2J\nb (process 1 " in device_locks.words(holder, [4])
    file.close()


def test_what_is_no_file_is_passed_over(planted, base):
    """To open a pipe would take for ever."""
    os.mkfifo(f"{planted}/2.1", 0o666)
    os.mkdir(f"{planted}/2.2")
    os.symlink("/dev/tty", f"{planted}/2.3")
    os.symlink(f"{planted}/2.1", f"{planted}/2.4")
    if os.geteuid() == 0:
        os.mknod(f"{planted}/2.5", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mkfifo(f"{base}/mindspore-launch-2", 0o666)
    with open(f"{base}/mindspore-launch-3", "w"):
        pass
    give_away(planted)
    assert Job(base).take(5) == []


def test_links_lead_nowhere(planted, base, tmp_path):
    file = lay(tmp_path / "victim", json.dumps(GOOD).encode())
    before = os.stat(tmp_path / "victim")
    os.symlink(tmp_path / "victim", f"{planted}/1.1")
    os.symlink(tmp_path / "none", f"{planted}/1.2")
    os.symlink(tmp_path, f"{base}/mindspore-launch-2")
    give_away(planted, tmp_path / "victim")
    assert Job(base).take(4) == []
    assert os.stat(tmp_path / "victim").st_mtime_ns == before.st_mtime_ns
    assert not os.path.lexists(tmp_path / "none")
    file.close()


def test_a_huge_file_and_a_million_files_are_not_read(planted, base, monkeypatch):
    monkeypatch.setattr(lock_folders, "MOST_FILES", 3)
    file = lay(f"{planted}/1.1", json.dumps(GOOD).encode())
    os.truncate(file.name, 1 << 40)
    assert jobs() == []
    os.truncate(file.name, 4096)
    for number in range(10):
        lay(f"{planted}/2.{number}", b"").close()
    assert len(list(lock_folders.files())) == 3
    os.rename(planted, f"{base}/mindspore-launch-2")  # and as many folders as he likes
    os.mkdir(planted)
    lay(f"{planted}/2.1", b"").close()
    assert len(list(lock_folders.files())) == 3
    file.close()


@needs_root
def test_a_file_of_one_user_in_the_folder_of_another_counts_for_neither(planted, base):
    file = lay(f"{planted}/1.1", json.dumps(GOOD).encode())
    assert jobs() == ["planted"]
    os.chown(planted, OTHER, OTHER)
    assert jobs() == []
    file.close()


@needs_root
def test_a_secret_folder_of_another_user_is_passed_over(planted):
    os.chmod(planted, 0)
    assert as_user(OTHER, jobs) == []


# ---- where our own file is -------------------------------------------------------------------------


def refuses(job, where, why):
    with pytest.raises(OSError, match=why) as error:
        job.take(4)
    assert error.value.filename == where
    os.close(job.descriptor)
    assert os.path.getsize(job.path) == 0


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_base_where_others_can_rename_our_folder(base, mode):
    os.chmod(base, mode)
    refuses(Job(base), base, r"chmod \+t")


@needs_root
def test_a_base_of_another_user(base):
    os.chown(base, OTHER, OTHER)
    refuses(Job(base), base, f"belongs to user {OTHER}")


def test_a_link_in_the_place_of_the_base(base, monkeypatch):
    os.mkdir(f"{base}/real")
    os.symlink(f"{base}/real", f"{base}/link")
    monkeypatch.setenv("LAUNCH_LOCKS", f"{base}/link/")
    refuses(Job(f"{base}/link"), f"{base}/link", "Not a directory")
    with pytest.raises(NotADirectoryError):
        device_locks.held()


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_can_write(base, mode):
    job = Job(base)
    os.chmod(os.path.dirname(job.path), mode)
    refuses(job, os.path.dirname(job.path), "chmod go-w")


@needs_root
def test_a_folder_of_another_user(base):
    job = Job(base)
    os.chown(os.path.dirname(job.path), OTHER, OTHER)
    refuses(job, os.path.dirname(job.path), f"belongs to user {OTHER}")


def test_a_link_in_the_place_of_the_folder(base):
    job = Job(base)
    folder = os.path.dirname(job.path)
    os.rename(folder, f"{base}/real")
    os.symlink(f"{base}/real", folder)
    refuses(job, folder, "Not a directory")


def test_another_file_in_the_place_of_ours(base):
    job = Job(base)
    os.rename(job.path, f"{job.path}0")
    os.symlink(f"{job.path}0", job.path)
    with pytest.raises(Refusal, match="start again"):
        job.take(4)
    pipe, _ = os.pipe()
    with pytest.raises(Refusal, match="start again"):
        device_locks.take(pipe, job.path, "job", 1, [4])


def test_a_link_with_the_name_of_our_file_leads_nowhere(base, tmp_path, monkeypatch):
    """No file is emptied, opened to all, or made."""
    monkeypatch.setattr(os, "urandom", bytes)
    victim, none = tmp_path / "victim", tmp_path / "none"
    victim.write_text("precious")
    victim.chmod(0o600)
    folder = f"{base}/mindspore-launch-{os.geteuid()}"
    for target in (victim, none):
        name = f"{os.getpid()}.0"
        os.symlink(target, f"{base}/{name}")
        descriptor, path = lock_folders.make()
        assert path == f"{folder}/{name}" and os.path.samestat(os.fstat(descriptor), os.lstat(path))
        os.close(descriptor)
        os.unlink(path)
        os.symlink(target, path)
        assert lock_folders.make() == (None, path)
        os.unlink(path)
        os.unlink(f"{base}/{name}")
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode), none.exists()) == ("precious", 0o600, False)


def test_our_file_is_our_own_secret_until_the_lock_is_taken(base, monkeypatch):
    monkeypatch.setenv("LAUNCH_LOCKS", f"{base}/elsewhere")
    before = os.umask(0)
    try:
        descriptor, path = lock_folders.make()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.fstat(descriptor).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o755
    assert os.get_inheritable(descriptor)  # the ranks hold it, too
    os.close(descriptor)


def test_why_the_launcher_could_not_make_its_file(base, monkeypatch):
    folder = f"{base}/mindspore-launch-{os.geteuid()}"
    path = f"{folder}/1.1"

    def reason():
        with pytest.raises(OSError) as error:
            device_locks.take(None, path, "job", 1, [4])
        return error.value.filename, error.value.strerror

    assert reason() == (path, "Resource temporarily unavailable")  # it can be made now
    assert os.listdir(folder) == []
    with open(path, "w"):
        pass
    assert reason() == (path, "File exists")
    os.unlink(path)
    os.rmdir(folder)
    with open(folder, "w"):
        pass
    assert reason() == (folder, "Not a directory")
    path = "/proc/none/mindspore-launch-1/1.1"
    assert reason() == ("/proc/none", "No such file or directory")
    path = "/proc/mindspore-launch-1/1.1"
    assert reason()[0] == "/proc/mindspore-launch-1"


def test_without_a_name_all_users_look_into_the_same_folders(monkeypatch, tmp_path):
    """Some launches may find no /run/lock and take /tmp: all look into both."""
    monkeypatch.delenv("LAUNCH_LOCKS", raising=False)
    assert lock_folders.bases() == ("/run/lock", "/tmp")
    bases = [tempfile.mkdtemp(dir=tmp_path), tempfile.mkdtemp(dir=tmp_path), str(tmp_path / "none")]
    os.symlink(bases[1], tmp_path / "link")  # as root makes them
    monkeypatch.setattr(lock_folders, "BASES", (bases[0], str(tmp_path / "link"), bases[2]))
    first, second = Job(bases[0]), Job(str(tmp_path / "link"))
    assert first.take(4, name="first") == []
    assert second.take(4) == ["first"]
    assert second.take(5, name="second") == []
    assert sorted(jobs()) == ["first", "second"]
