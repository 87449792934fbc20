"""Programs of the host: found by name, asked without a shell, never waited for without end."""

import contextlib
import os
import signal
import time
from collections import namedtuple

Ended = namedtuple("Ended", "status stdout stderr")  # int, str, str; 124 and 127 as a shell has them


def on_path(name):
    """Whether the shell would find the program `name`; shutil.which takes 2 ms to import."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.path.isfile(path) and os.access(path, os.X_OK) for path in (os.path.join(f, name) for f in folders))


def ask(command, seconds):
    """The Ended of one command (a list)."""
    return ask_all({None: command}, seconds)[None]


def ask_all(commands, seconds):
    """{key: Ended} of the commands {key: list}, all run at the same time, each ended after `seconds`."""
    running = {key: _start(command) for key, command in commands.items()}
    deadline = time.monotonic() + seconds
    try:
        return {key: _finish(process, deadline, seconds) for key, process in running.items()}
    except KeyboardInterrupt:  # they are in sessions of their own and did not get it
        for process in running.values():
            _kill(process)
        raise


def _start(command):
    import subprocess  # 5 ms that a launch with hccn.conf need not spend

    # The tools of the driver count physical devices and must not see a list that renumbers them.
    environment = {name: value for name, value in os.environ.items() if name != "ASCEND_RT_VISIBLE_DEVICES"}
    environment["LC_ALL"] = "C"
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # to be able to end what it started, too
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
    except OSError as error:
        return error


def _finish(process, deadline, seconds):
    import subprocess

    if isinstance(process, OSError):
        return Ended(127, "", process.strerror or str(process))
    try:
        stdout, stderr = process.communicate(timeout=max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        _kill(process)
        process.stdout.close()
        process.stderr.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the driver does not die
            process.wait(timeout=1)
        return Ended(124, "", f"no answer within {seconds} s")
    return Ended(process.returncode, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))


def _kill(process):
    with contextlib.suppress(AttributeError, ProcessLookupError):  # never started; has ended
        os.killpg(process.pid, signal.SIGKILL)
