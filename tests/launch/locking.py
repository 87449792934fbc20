"""Lock files as launches make them, and a second user, for the tests of locks."""

import contextlib
import itertools
import os
import pickle
import signal
import tempfile
import traceback

import pytest

from tools.launch.devices import device_locks

OTHER = 54321  # a user who has nothing and needs no name
numbers = itertools.count(1)


class Job:
    """A launch that has made its lock file, as tools/launch/devices/lock_folders.py does."""

    def __init__(self, base, pid=None):
        self.pid = pid or os.getpid()
        folder = os.path.join(base, f"mindspore-launch-{os.geteuid()}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o755)
        self.path = os.path.join(folder, f"{self.pid}.{os.getpid()}{next(numbers)}")
        self.descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def take(self, *devices, name="job", cores=()):
        """The names of the jobs in the way."""
        holders = device_locks.take(self.descriptor, self.path, name, self.pid, list(devices), set(cores))
        return [holder.job for holder in holders]

    def end(self):
        os.close(self.descriptor)


def free_pid():
    """The number of a process that has ended."""
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def start_as(number, do):
    """The id of a new process of that user, which ends when do() has returned."""
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(number)
            os.setuid(number)
            do()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)  # pytest's own end must not run twice
    return pid


def as_user(number, do):
    """What do() returns in a process of that user; what it raises there is the failure of the test."""

    def tell():
        try:
            told = do(), None
        except Exception:
            told = None, traceback.format_exc()
        pickle.dump(told, answer)
        answer.flush()

    with tempfile.TemporaryFile() as answer:
        os.waitpid(start_as(number, tell), 0)
        answer.seek(0)
        result, error = pickle.load(answer)
    assert error is None, error
    return result


@pytest.fixture
def base(monkeypatch):
    """The base folder, which other users reach, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o1777)
        monkeypatch.setenv("LAUNCH_LOCKS", folder)
        yield folder
