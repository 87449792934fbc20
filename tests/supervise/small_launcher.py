"""Small launchers, each a process of its own: it gets signals, and is killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.supervise import proc

ROOT = Path(__file__).resolve().parents[2]
BEGIN = f"""\
import json, os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from tools.supervise import proc
from tools.supervise.events import Ended, Signalled
from tools.supervise.guardian import Guardian
from tools.supervise.world import CannotStart, World
world = World()
world.heed_signals()
null = os.open(os.devnull, os.O_RDWR)
ENVIRONMENT = dict(os.environb)

def start(name, *words, mark=b""):
    return world.start(name, list(words), {{**ENVIRONMENT, b"LAUNCH_JOB": mark}}, null)

def tell(*what):
    print(json.dumps(what), flush=True)

def hear(number):
    "The next events, at least so many of members that have ended."
    found = []
    while sum(len(event.rows) for event in found if type(event) is Ended) < number:
        found += world.events(60)
    return found
"""


@pytest.fixture
def launcher():
    """launcher(LINES): starts Python that runs these lines; ignores: a signal that its caller ignores."""
    started = []

    def start(lines, ignores="USR2", **options):
        words = ["sh", "-c", f"trap '' {ignores}; exec \"$@\"", "-", sys.executable, "-c", BEGIN + lines]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(words, start_new_session=True, **pipes, **options))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        _end_session(one.pid)
        one.communicate()


def _end_session(session):
    """What a launcher that was killed has left may hold the pipes that we wait for."""
    for pid, fields in proc.table().items():
        if fields.session == session:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def told(launcher):
    """The next thing that it tells."""
    return json.loads(launcher.stdout.readline())


def is_child(pid, parent):
    """Whether `parent` is still the parent of `pid`."""
    return proc.stat(pid)[1:2] == [b"%d" % parent]


def state(pid):
    """As ps shows it; empty: the process is gone."""
    return b"".join(proc.stat(pid)[:1]).decode()


def until(true, what=""):
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end, what or "it never came true"
        time.sleep(0.01)


def gone(*pids):
    until(lambda: all(state(pid) in ("", "Z", "X") for pid in pids), f"one of {pids} still runs")
