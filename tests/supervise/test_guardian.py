"""The guardian, and the other processes beside the launcher; with small processes."""

import os
import signal
import time

import pytest
from small_launcher import gone, is_child, state, told, until

from tools.supervise import guardian, proc

# ---- the guardian ----------------------------------------------------------------------------------------------------

GUARDED = """
guardian = Guardian("MARK", 1, lambda: open("settled", "w").close())
world.adopt(guardian.pid)
world.own(guardian.lifeline)
obeys = start("0", "sleep", "60")
ignores = start("1", "sh", "-c", "trap '' TERM HUP; sleep 60 & wait; sleep 60")
away = start("2", "setsid", "sleep", "60", mark=b"MARK")
ended = start("3", "true")
for pid in (obeys, ignores):
    guardian.tell(b"start", pid)
"""


def guarded(launcher, more, name):
    return launcher(GUARDED.replace("MARK", f"{name}-{os.getpid()}") + more)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["one", "group", "stopped"])
def test_sigkill_of_the_launcher_ends_all_that_it_has_started(launcher, how, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = guarded(launcher, "tell(guardian.pid, obeys, ignores, away)\nwhile True: world.events(60)", how)
    guardian, *pids = told(one)
    if how == "stopped":
        os.kill(guardian, signal.SIGSTOP)
        until(lambda: state(guardian) == "T")
    assert not os.path.exists("settled")
    (os.killpg if how == "group" else os.kill)(one.pid, signal.SIGKILL)
    gone(guardian, *pids)
    assert os.path.exists("settled")


LATE = """
from tools.supervise import guardian as slow
quiet = slow.quiet
slow.quiet = lambda: (os.close(os.open("late", os.O_RDONLY)), quiet())
"""


def test_a_guardian_that_has_not_begun_when_it_is_stopped_and_the_launcher_killed(launcher, tmp_path, monkeypatch):
    """On a busy machine its first instructions may come after the launcher's last ones."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("late")
    one = launcher(
        LATE
        + GUARDED.replace("MARK", f"late-{os.getpid()}")
        + "tell(guardian.pid, obeys, ignores, away)\nwhile True: world.events(60)"
    )
    guardian, *pids = told(one)
    os.kill(guardian, signal.SIGSTOP)
    until(lambda: state(guardian) == "T")
    one.kill()
    one.wait()
    late = os.open("late", os.O_RDWR)
    try:
        gone(guardian, *pids)
    finally:
        os.close(late)
        proc.send(guardian, signal.SIGKILL)
    assert os.path.exists("settled")


def test_a_process_that_was_stopped_while_it_starts_does_not_hold_the_launcher(launcher, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("late")
    one = launcher(
        """
tell("starts")
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "late", os.O_RDONLY, 0)])
tell("started")
"""
    )
    assert told(one) == ["starts"]
    until(lambda: state(one.pid) == "D")
    (starting,) = [int(pid) for pid in proc.numbers() if is_child(int(pid), one.pid)]
    os.kill(starting, signal.SIGSTOP)
    until(lambda: state(starting) == "T")
    late = os.open("late", os.O_RDWR)
    try:
        guardian.wake_starting(one.pid)
        until(lambda: state(one.pid) != "D")
        assert told(one) == ["started"]
    finally:
        proc.send(starting, signal.SIGCONT)
        until(lambda: state(one.pid) != "D")
        os.close(late)


def test_the_guardian_leaves_groups_alone_that_are_gone(launcher, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = guarded(
        launcher,
        'guardian.tell(b"gone", obeys)\ntell(guardian.pid, obeys, ignores, away)\nwhile True: world.events(60)',
        "gone",
    )
    guardian, obeys, *others = told(one)
    try:
        one.kill()
        gone(guardian, *others)
        assert state(obeys) not in ("", "Z")
    finally:
        os.kill(obeys, signal.SIGKILL)


def test_a_guardian_heeds_no_signal_but_sigkill_and_ends_with_the_job(launcher):
    one = guarded(
        launcher,
        """
tell(guardian.pid)
sys.stdin.readline()
guardian.end()
tell(world.await_end(guardian.pid, 60), world.status(guardian.pid))
for pid in (obeys, ignores, away):
    proc.signal_group(pid, signal.SIGKILL)
proc.sweep(b"MARK", __import__("time").sleep)
""".replace("MARK", f"ends-{os.getpid()}"),
        "ends",
    )
    (guardian,) = told(one)
    until(lambda: open_words(guardian) == "mindspore-launch-guardian")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        os.kill(guardian, number)
    one.stdin.write("\n")
    one.stdin.flush()
    assert told(one) == [True, 137]
    assert one.wait() == 0


def open_words(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().strip("\0")


def test_a_guardian_that_reads_nothing_does_not_stop_the_launcher(launcher):
    one = guarded(
        launcher,
        """
os.kill(guardian.pid, signal.SIGSTOP)
for number in range(20000):
    guardian.tell(b"start", 4000000 + number)
guardian.end()
tell("goes on")
for pid in (obeys, ignores, away):
    proc.signal_group(pid, signal.SIGKILL)
""",
        "full",
    )
    assert told(one) == ["goes on"]
    one.wait()
    proc.sweep(f"full-{os.getpid()}".encode(), time.sleep)


# ---- processes beside the launcher -----------------------------------------------------------------------------------

BESIDE = """
import time, types
from tools.features.beside import Beside
said = []
run = types.SimpleNamespace(world=world, say=said.append, mark="x", logs=".", attempt=0)
run.plan = types.SimpleNamespace(run_dir=".", ranks=[(0, 0), (1, 1)])
run.settings = types.SimpleNamespace(watch_plogs=True, hang_timeout=1, straggler="1.5", metrics="", max_restarts=0)
run.voice = types.SimpleNamespace(name="x.sh", before="")

def hang(*_):
    "Whoever is killed for it has ignored everything else."
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)
"""


def test_lines_and_orders_of_a_process_beside_the_launcher(launcher):
    one = launcher(
        BESIDE
        + r"""
def echo(orders, tells):
    for line in os.fdopen(orders):
        os.write(tells, line.upper().encode())

beside = Beside(world, "mindspore-launch-x", echo)
beside.order("a b")
beside.send(b"c\nd", 5)
tell(list(beside.lines(60)), world.await_end(beside.pid, 60))
beside = Beside(world, "mindspore-launch-x", echo)
beside.hear("feature")
world.kill(beside.pid, signal.SIGSTOP)
beside.order("e")  # wakes it
found = []
while not found:
    found += world.events(60)
tell(found)
beside.close()
tell(world.await_end(beside.pid, 60), beside.lives())
beside.order("nobody is there, and nothing is raised")
"""
    )
    assert told(one) == [["A B", "C"], True]  # "D" has no end
    assert told(one) == [[["feature", "E"]]]
    assert told(one) == [True, False]
    assert one.wait() == 0


def test_a_process_that_does_not_answer_in_time_is_killed_and_what_it_has_said_counts(launcher):
    one = launcher(
        BESIDE
        + r"""
beside = Beside(world, "x", lambda orders, tells: (os.write(tells, b"the first line\nhalf a"), hang()))
tell(list(beside.lines(1)), world.await_end(beside.pid, 60), world.status(beside.pid))
"""
    )
    assert told(one) == [["the first line"], True, 137]


def test_no_process_beside_the_launcher_ends_it_and_its_pipes_are_closed(launcher):
    one = launcher(
        BESIDE
        + r"""
before = len(os.listdir("/proc/self/fd"))
os.fork = lambda: (_ for _ in ()).throw(BlockingIOError(11, "no more"))
try:
    Beside(world, "x", hang)
except OSError as error:
    tell(error.errno, len(os.listdir("/proc/self/fd")) - before)
"""
    )
    assert told(one) == [11, 0]


def test_a_watcher_of_plogs_that_does_not_end_when_the_job_has_ended_is_killed(launcher):
    one = launcher(
        BESIDE
        + r"""
from tools.features import plog_watch
plog_watch.LAST_LOOK = 0.2
feature = plog_watch.PlogWatch(run)
feature._watch = types.SimpleNamespace(main=hang)
feature.begins()
pid = feature._beside.pid
feature.attempt_ended()
tell(world.await_end(pid, 60), world.status(pid), said)
"""
    )
    ended, status, said = told(one)
    assert (ended, said) == (True, []) and status in (137, 143)  # 143: it had not come so far


def test_a_reader_of_plogs_that_takes_too_long_is_ended(launcher):
    one = launcher(
        BESIDE
        + r"""
from tools.features import plog_watch
plog_watch.PATIENCE = 1
feature = plog_watch.PlogWatch(run)
feature._now = types.SimpleNamespace(tell=lambda tells, words: (os.write(tells, b"the first line\n"), hang()))
feature.hangs()
tell(said)
"""
    )
    assert told(one) == [["the first line"]]


def test_a_process_of_metrics_that_does_not_end_with_the_job_is_killed(launcher):
    one = launcher(
        BESIDE
        + r"""
from tools.features import metrics
metrics.PATIENCE = 0.2
metrics.monitor = types.SimpleNamespace(main=hang)
feature = metrics.Metrics(run)
feature.begins()
feature.settle(0)
feature.failed(types.SimpleNamespace(name="1", status=2), False)
tell(said, world.await_end(feature._beside.pid, 60))
feature = metrics.Metrics(run)
feature.begins()
world.kill(feature._beside.pid)
world.await_end(feature._beside.pid, 60)
feature.settle(0)
tell(said[1:])
feature = metrics.Metrics(run)
feature.begins()
feature._beside.order = lambda text: world.kill(feature._beside.pid)  # as one that is killed, and has not died yet
feature.settle(0)
tell(said[2:])
"""
    )
    assert told(one) == [
        ["the process of --straggler and --metrics did not end and was killed; its output may be outdated"],
        True,
    ]
    was_ended = ["the process of --straggler and --metrics was ended before the job; its output may be outdated"]
    assert told(one) == [was_ended]
    assert told(one) == [was_ended]
