"""What outlives a rank that ended with 0: what is waited for, whose end is a failure, and what the log gets."""

import os
import signal
import time

import pytest
from fake_job import GROUP, Job
from small_launcher import told, until

from tools.supervise import children, events
from tools.supervise.children import Process
from tools.supervise.leftovers import BY_OPTION, LATEST, MOMENT, WORKERS, Leftovers
from tools.supervise.own_files import MOST, Outputs

SESSION = os.getsid(0)
NEVER = 1 << 22  # ids that no process has
TRAINING = Process(NEVER + 1, GROUP, SESSION, b"python\0train.py\0")
OTHER = Process(NEVER + 2, GROUP, SESSION, b"tensorboard\0")
COPY = Process(NEVER + 3, GROUP, SESSION, b"python\0main.py\0")
SPAWNED = Process(NEVER + 4, GROUP, SESSION, b"python\0-c\0from multiprocessing.spawn import spawn_main\0")


class World:
    """Its clock moves when the test says so; what ranks have left is what the test says."""

    def __init__(self, python):
        self.time, self.found, self.python = 0.0, {}, python

    def now(self):
        return self.time

    def left(self, job):
        return self.found

    def was_python(self, name):
        return self.python


class Rank:
    """Rank 0, which has ended with 0 and has left these processes."""

    def __init__(self, *processes, python=False, waits=True):
        self.world, self.told, self.over = World(python), [], []
        self.all = Leftovers(
            self.world,
            b"job",
            lambda: ["python", "main.py"],
            self.told.append,
            lambda *row: self.over.append(row),
            waits=waits,
        )
        self.has(*processes)
        self.held = self.all.hold([("0", os.devnull, GROUP)])

    def has(self, *processes):
        self.world.found = {"0": list(processes)} if processes else {}

    def ends(self, process, status, *left):
        """It ends, and these are left."""
        self.has(*left)
        self.all.have_ended([("0", process.pid, status)])

    def waits(self, seconds=MOMENT):
        self.world.time += seconds
        self.all.check()


def test_a_rank_that_leaves_nothing_is_over_at_once():
    assert Rank().held == set()


def test_what_ends_within_a_moment_is_not_told():
    rank = Rank(TRAINING)
    assert rank.held == {"0"}
    rank.waits(MOMENT / 2)
    rank.ends(TRAINING, 0)
    assert (rank.told, rank.over) == ([], [("0", 0)])


def test_a_training_is_waited_for_and_told_once():
    rank = Rank(TRAINING)
    rank.waits()
    rank.waits(3600)
    assert rank.told == [events.Left("0", [(TRAINING.pid, GROUP, "python\0train.py\0")])]
    rank.ends(TRAINING, 0)
    assert rank.over == [("0", 0)]


def test_the_files_of_what_is_left_are_looked_for_now_and_then_however_much_happens(monkeypatch):
    follows = []
    monkeypatch.setattr(Outputs, "follow", lambda *_: follows.append(1))
    rank = Rank(TRAINING)
    for _ in range(500):
        rank.waits(0.001)
    assert 5 <= len(follows) <= 8


@pytest.mark.parametrize("wait", [0, MOMENT])
def test_a_training_that_a_script_has_left_fails(wait):
    rank = Rank(TRAINING, OTHER)
    rank.waits(wait)
    rank.ends(TRAINING, 3, OTHER)
    assert (rank.told[-1], rank.over) == (events.LeftFailed("0", TRAINING.pid, "python\0train.py\0"), [("0", 3)])


def test_what_a_python_program_leaves_for_a_moment_is_a_helper_whatever_its_status():
    rank = Rank(OTHER, python=True)
    rank.ends(OTHER, 1)
    assert (rank.told, rank.over) == ([], [("0", 0)])
    rank = Rank(OTHER, python=True)
    rank.waits()
    rank.ends(OTHER, 1)
    assert rank.over == [("0", 1)]


@pytest.mark.parametrize("worker", [COPY, SPAWNED])
def test_workers_of_a_python_program_are_ended_and_told(worker):
    rank = Rank(worker, python=True)
    rank.waits()
    assert (rank.told, rank.over) == (
        [events.Left("0", [(worker.pid, GROUP, os.fsdecode(worker.words))], WORKERS)],
        [("0", 0)],
    )


def test_a_copy_in_a_session_of_its_own_has_made_itself_a_daemon_that_trains():
    rank = Rank(COPY._replace(session=NEVER), python=True)
    rank.waits()
    assert (rank.told[0].ends, rank.over) == ("", [])


def test_workers_that_a_training_leaves_do_not_hold_the_rank_nor_fail_it():
    rank = Rank(TRAINING)
    rank.waits()
    rank.ends(TRAINING, 0, TRAINING._replace(pid=NEVER + 9))
    assert rank.over == []
    rank.ends(TRAINING._replace(pid=NEVER + 9), 1)
    assert rank.over == [("0", 0)]


def test_what_is_not_to_be_waited_for_is_ended():
    rank = Rank(TRAINING, waits=False)
    rank.waits()
    assert (rank.told[0].ends, rank.over) == (BY_OPTION, [("0", 0)])


def test_who_ends_what_is_left_beside_a_training_that_ended_well_does_no_harm():
    rank = Rank(TRAINING, OTHER)
    rank.waits()
    rank.ends(TRAINING, 0, OTHER)
    rank.waits(60)
    assert [row for event in rank.told for row in event.rows][-1][0] == OTHER.pid  # told again: it may be no training
    rank.ends(OTHER, 143)
    assert rank.over == [("0", 0)]
    rank = Rank(TRAINING)
    rank.waits()
    rank.ends(TRAINING, 143)
    assert rank.over == [("0", 143)]


def test_when_the_job_stops_all_ends_are_awaited_and_the_first_status_counts():
    rank = Rank(TRAINING, OTHER)
    rank.waits()
    rank.all.signal(signal.SIGTERM)
    rank.ends(OTHER, 143, TRAINING)
    assert rank.over == []
    rank.ends(TRAINING, 137)
    assert rank.over == [("0", 143)]


def test_ranks_that_end_one_after_the_other_are_told_of_together():
    rank = Rank(TRAINING)
    rank.world.time = MOMENT * 0.9
    rank.world.found["1"] = [OTHER]
    rank.all.hold([("1", os.devnull, GROUP + 1)])
    rank.waits(MOMENT * 0.2)
    assert rank.told == []
    rank.waits(LATEST)
    assert [event.name for event in rank.told] == ["0", "1"]


# ---- the supervisor --------------------------------------------------------------------------------------------------


def test_the_supervisor_names_ranks_and_processes_in_one_sentence_and_bounds_it():
    job = Job(6)
    for rank in range(6):
        job.world.at(1, events.Left(str(rank), [(500 + rank, GROUP + rank, "python\0train.py\0")]))
        job.world.ends(60, str(rank), 0)
    assert job.run() == 0
    assert job.said == [
        "ranks 0-5 ended with 0 and left 6 processes that still run (PID 500: python train.py, PID 501: python "
        "train.py, PID 502: python train.py and 3 more): the job waits until they have ended; to end them with "
        "their rank: --leftovers end"
    ]
    assert job.supervisor.members.get("3").pid == 503


LEFT = events.Left("0", [(501, 501, "setsid\0"), (502, 77, "sleep\0"), (503, 500, "sleep\0")])


def test_what_an_agent_of_this_host_tells_of_is_signalled_by_the_launcher():
    job = Job(1, name="msrun", tells_ends=True)
    job.told(1, ("0", 500))
    job.world.at(2, LEFT)
    job.world.at(5, events.Signalled(signal.SIGTERM))
    job.world.ends(6, "0", 143)
    job.run()
    assert (501 in job.world.sent(signal.SIGTERM), set(job.world.sent(signal.SIGTERM, "process"))) == (True, {502})


def test_what_an_agent_of_another_host_tells_of_is_signalled_there():
    job = Job(1, name="mpirun", way=3.0)
    job.world.at(1, events.Began([("0", 500, "there")]))
    job.world.at(2, LEFT)
    job.world.at(5, events.Signalled(signal.SIGTERM))
    job.world.ends(6, "0", 143)
    job.world.ends(7, "mpirun", 0)
    job.run()
    assert (job.world.sent(signal.SIGTERM), job.world.sent(signal.SIGTERM, "process")) == ({}, {})


def test_a_rank_whose_first_process_is_gone_is_not_lost_while_what_it_has_left_runs():
    job = Job(1, name="msrun", tells_ends=True)
    job.told(1, ("0", 500))
    job.world.at(2, events.Left("0", [(501, 501, "setsid\0")]), lambda: job.world.living.pop(500))
    job.world.ends(60, "0", 0)
    job.world.ends(61, "msrun", 0)
    assert (job.run(), job.statuses()["0"]) == (0, 0)


# ---- real processes --------------------------------------------------------------------------------------------------


def test_a_process_that_a_member_leaves_is_ours_with_its_status_also_in_a_session_of_its_own(launcher):
    one = launcher("""
world.children.adopt()
start("a", "sh", "-c", "sleep 600 & setsid sh -c 'sleep 0.5; exit 7' & exit 0", mark=b"job")
os.environb[b"LAUNCH_JOB"] = b"job"
hear(1)
found = {}
while not any(process.words == b"sleep\\x00600\\x00" for process in found.get("a", ())):  # it begins as a copy of sh
    found = world.left(b"job")
tell({name: sorted(process.words.decode() for process in rows) for name, rows in found.items()})
for process in found["a"]:
    if process.words == b"sleep\\x00600\\x00":
        os.kill(process.pid, signal.SIGKILL)
ends = []
while len(ends) < len(found["a"]):
    ends += [row[2] for event in world.events(60) if type(event).__name__ == "LeftEnded" for row in event.rows]
tell(sorted(ends), world.left(b"job"))
""")
    (found,) = told(one)
    assert "sleep\x00600\x00" in found["a"]
    statuses, rest = told(one)
    assert (statuses[-1], rest) == (137, {})


def test_where_nothing_was_left_the_processes_of_the_host_are_not_looked_at(launcher):
    one = launcher("""
world.children.adopt()
table, looks = proc.table, []
proc.table = lambda *words: looks.append(1) or table(*words)
world.fork(lambda: signal.pause())
start("a", "sleep", "600")
start("b", "true")
hear(1)
tell(world.left(b"job"), len(looks))
start("c", "sh", "-c", "sleep 600 & exit 0")
hear(1)
tell(list(world.left(b"job")), len(looks))
""")
    assert told(one) == [{}, 0]
    assert told(one) == [["c"], 1]


def test_a_kernel_that_refuses_is_told_of(launcher):
    one = launcher("""
import _ctypes
tell(world.children.adopt())
_ctypes.call_function = lambda *_: -1
tell(world.children.adopt())
sys.modules["_ctypes"] = None
tell(world.children.adopt())
""")
    assert [told(one) for _ in range(3)] == [[""], [children.REFUSED], [children.NO_CTYPES]]


# ---- the files of what is left ---------------------------------------------------------------------------------------


@pytest.fixture
def writer(tmp_path):
    """writer(REDIRECTION): a process whose stdout leads there, and the log of its rank."""
    started = []

    def start(redirection):
        (tmp_path / "log").write_text("first\n")
        pid = os.posix_spawn(
            "/bin/sh", ["sh", "-c", f"exec sleep 600 2>/dev/null {redirection}"], {**os.environ, "D": str(tmp_path)}
        )
        started.append(pid)
        until(lambda: os.readlink(f"/proc/{pid}/exe").endswith(("sleep", "coreutils", "busybox")))
        return pid, Outputs(str(tmp_path / "log")), tmp_path

    yield start
    for pid in started:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_what_is_written_to_another_file_comes_into_the_log_once(writer):
    pid, outputs, folder = writer('>"$D/own" 2>&1')
    outputs.follow([pid])
    for text in ("one\n", "two\n"):
        with open(folder / "own", "a") as file:
            file.write(text)
        outputs.copy()
        outputs.copy()
    outputs.close()
    assert (folder / "log").read_text() == f"first\n(what follows is from {folder}/own)\none\ntwo\n"


def test_the_texts_of_several_files_have_their_names_before_them(writer):
    pid, outputs, folder = writer('>"$D/one"')
    other, _, _ = writer('>"$D/two"')
    outputs.follow([pid, other])
    for name in ("two", "two", "one", "two"):
        with open(folder / name, "a") as file:
            file.write(f"{name}\n")
        outputs.copy()
    for name in ("one", "two"):
        with open(folder / name, "a") as file:
            file.write(f"{name}\n")
    outputs.close(failed=pid)
    names = [line.rpartition("/")[2].strip(")\n") for line in (folder / "log").read_text().splitlines()[1:]]
    assert names == ["two", "two", "two", "one", "one", "two", "two", "two", "one", "one"]


def test_what_was_in_a_file_that_is_added_to_is_of_an_earlier_run(writer, tmp_path):
    (tmp_path / "own").write_text("old\n")
    pid, outputs, folder = writer('>>"$D/own"')
    outputs.follow([pid])
    with open(folder / "own", "a") as file:
        file.write("new\n")
    outputs.close()
    assert "old" not in (folder / "log").read_text()
    assert (folder / "log").read_text().endswith("new\n")


def test_the_rank_log_itself_a_pipe_and_a_device_are_not_copied(writer, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for redirection in ('>>"$D/log"', '>"$D/pipe"', ">/dev/null"):
        pid, outputs, folder = writer(redirection)
        outputs.follow([pid])
        outputs.close()
        assert (folder / "log").read_text() == "first\n"
    os.close(reader)


def test_of_a_file_that_grows_fast_the_end_is_copied(writer):
    pid, outputs, folder = writer('>"$D/own"')
    outputs.follow([pid])
    with open(folder / "own", "wb") as file:
        file.write(b"a" * 1000 + b"b" * MOST)
    before = time.monotonic()
    outputs.close()
    assert time.monotonic() - before < 60
    text = (folder / "log").read_bytes()
    assert b"(1000 bytes are left out here)\nbbb" in text
    assert b"aaaa" not in text
