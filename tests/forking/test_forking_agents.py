"""--import_once under an engine: how the agents of one host meet, and when they do not (tools/forking)."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tools.forking import link, order, reasons
from tools.forking.importing import Importing
from tools.forking.link import Process, Reader
from tools.forking.order import Order
from tools.launch.programs.import_once import Imports
from tools.supervise.world import World

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
IMPORTS = Imports(modules=[("heavy", True)], program="program.py", forced=False)
# what the agents run, with less patience
PROGRAM = """\
import os, sys
sys.path.insert(0, sys.argv.pop(1))
from tools.forking import agent, first, other
first.WITHIN = other.WITHIN = float(sys.argv.pop(1))
from tools.rank import agent as rank_agent
os._exit(rank_agent.main(sys.argv[1:], agent.kind))
"""


@pytest.fixture
def ranks(tmp_path):
    """ranks(NUMBER...): these agents of two ranks of one host, as mpirun starts them; `within`: their patience."""
    started = []
    (tmp_path / "launch.json").touch()
    (tmp_path / "heavy.py").write_text("import os\nprint('heavy by', os.getpid(), flush=True)\n")
    (tmp_path / "program.py").write_text("import heavy, os\nprint('rank', os.environ['RANK_ID'])\n")
    word = f"test-{os.getpid()}"

    def start(*numbers, within=60, **variables):
        for number in numbers:
            told = {
                "LAUNCH_ENGINE": "mpirun",
                "OMPI_COMM_WORLD_RANK": str(number),
                "OMPI_COMM_WORLD_LOCAL_RANK": str(number),
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
                "RANK_SIZE": "2",
                "LOG_DIR": str(tmp_path),
                "LAUNCH_DEVICES": "0 1",
                "LAUNCH_EXPORTS": "RANK_SIZE LOG_DIR",
                "LAUNCH_SIZES": "2x1",
                "LAUNCH_FOLDER": str(tmp_path),
                "LAUNCH_HOST": os.uname().nodename,
                "LAUNCH_LOGS": str(tmp_path),
                "LAUNCH_UMASK": "0022",
                "LAUNCH_HANG": "0",
                "LAUNCH_GRACE": "5",
                "LAUNCH_SECRET": "tell",
                "LAUNCH_JOB": f"forks-of-the-tests-{os.getpid()}",
                "LAUNCH_IMPORT_ONCE": f"{word}\n{IMPORTS.word()}",
                "PATH": os.environ["PATH"],
                **variables,
            }
            words = [sys.executable, "-c", PROGRAM, ROOT, str(within), sys.executable, "program.py"]
            options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            started.append(subprocess.Popen(words, env=told, cwd=tmp_path, **options))
        return started[-len(numbers) :]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def said(agent):
    """All that it tells until its end, without the secret, and its exit code."""
    out, error = agent.communicate(timeout=300)
    return [line[len(".tell ") :] for line in out.splitlines() if line], error, agent.returncode


def log(tmp_path, number):
    return (tmp_path / f"rank_{number}.log").read_text().splitlines()


def test_the_agents_of_a_host_meet_in_any_order(ranks, tmp_path):
    (other,) = ranks(1)
    (first,) = ranks(0)
    assert (said(first)[0][1], said(other)[0][1]) == ("exit 0 0", "exit 1 0")
    assert log(tmp_path, 0)[1:] == ["rank 0"] and log(tmp_path, 1)[1:] == ["rank 1"]
    assert log(tmp_path, 0)[0] == log(tmp_path, 1)[0]  # one process has imported


def test_a_first_agent_whose_others_do_not_come_says_so_and_starts_its_own_rank(ranks, tmp_path):
    (first,) = ranks(0, within=0.1)
    lines, error, code = said(first)
    assert lines[0] == f"without 0 {os.uname().nodename} late - 0" and lines[-1] == "exit 0 0", error
    assert code == 0 and log(tmp_path, 0)[-1] == "rank 0"


def test_another_agent_whose_first_does_not_come_starts_its_own_rank(ranks, tmp_path):
    (other,) = ranks(1, within=0.1)
    lines, error, code = said(other)
    assert [line.split()[0] for line in lines] == ["start", "exit"] and code == 0, error
    assert log(tmp_path, 1)[-1] == "rank 1"


def test_a_variable_that_is_read_at_the_import_and_differs_is_named(ranks, tmp_path):
    (first,) = ranks(0, PYTHONHASHSEED="1")
    (other,) = ranks(1, PYTHONHASHSEED="2")
    assert said(first)[0][0] == f"without 0 {os.uname().nodename} differs - PYTHONHASHSEED"
    assert said(other)[0][-1] == "exit 1 0"
    assert log(tmp_path, 0)[0] != log(tmp_path, 1)[0]


def test_a_first_agent_that_is_killed_takes_the_ranks_of_its_host_with_it(ranks, tmp_path):
    """Without an engine, which would end the others by itself."""
    (tmp_path / "program.py").write_text("import heavy, signal\nprint('waits', flush=True)\nsignal.pause()\n")
    first, other = ranks(0, 1)
    begun = other.stdout.readline() + other.stdout.readline()
    pid = int(begun.split()[3])
    end = time.monotonic() + 300
    while "waits" not in (tmp_path / "rank_1.log").read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    first.kill()
    assert said(other)[0][-1] == "exit 1 143"
    assert not Process(pid).runs()


def test_agents_of_another_launch_are_strangers(ranks, tmp_path):
    (first,) = ranks(0, within=0.5)
    (other,) = ranks(1, LAUNCH_SECRET="sell")
    lines = said(first)[0]
    assert lines[0].endswith(" late - 0") and lines[-1] == "exit 0 0"
    other.send_signal(signal.SIGURG)  # nobody has told it what becomes of its rank, and the launcher ends the job
    assert said(other)[0][-1].endswith("exit 1 143")
    assert "rank 1" not in (tmp_path / "rank_1.log").read_text()


# ---- the socket ------------------------------------------------------------------------------------------------------


@pytest.fixture
def listener():
    found = link.listen(link.address(f"test-{os.getpid()}", 1))
    with found:
        yield found


def test_both_ends_know_who_is_at_the_other_one(listener):
    connection = link.connect(listener.getsockname())
    accepted, process = link.accept(listener)
    assert process == os.getpid() and accepted >= 0
    assert not os.get_inheritable(accepted) and not os.get_inheritable(connection)
    for descriptor in (connection, accepted):
        os.close(descriptor)


def test_another_user_is_refused_at_both_ends(listener, monkeypatch):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(listener.getsockname())
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert link.accept(listener) == (-1, os.getpid())
    with pytest.raises(PermissionError):
        link.connect(listener.getsockname())


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_come_in_any_blocks_and_only_behind_the_secret(size):
    heard, ended = [], []
    reader = Reader(b"tell", lambda message: heard.append(message) or (), lambda: ended.append(1) or ())
    text = b"tell" + link.packed(("order", b"x" * 50, None)) + link.packed(("known",))
    for at in range(0, len(text), size):
        reader.take(text[at : at + size])
    assert heard == [("order", b"x" * 50, None), ("known",)] and not ended
    reader.take(b"")
    assert ended == [1]


@pytest.mark.parametrize("text", [b"sell" + link.packed(("known",)), b"tell" + b"\xff" * 8, b"te"])
def test_a_stranger_and_a_message_that_is_too_long_are_not_heard(text):
    heard = []
    reader = Reader(b"tell", lambda message: heard.append(message) or (), lambda: ())
    reader.take(text)
    reader.take(link.packed(("known",)))
    assert heard == []


@pytest.mark.parametrize("old", ["", "kernel", "Python"])
def test_a_process_of_another_agent_is_seen_to_end(old, monkeypatch):
    def none(_):
        raise OSError

    if old == "kernel":
        monkeypatch.setattr(os, "pidfd_open", none)
    elif old:
        monkeypatch.delattr(os, "pidfd_open")
    child = subprocess.Popen(["sleep", "600"])
    process = Process(child.pid)
    assert process.runs() and (process.descriptor < 0) == bool(old)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not process.runs()
    assert not Process(child.pid).runs()


# ---- why not ---------------------------------------------------------------------------------------------------------


def of_rank(number, **changed):
    usual = {
        "name": str(number),
        "words": ["python", "x.py"],
        "found": {b"A": b"1", b"RANK_ID": b"%d" % number},
        "log": "l",
        "cores": [number],
        "pid": 1,
        "cgroups": b"0::/",
    }
    return Order(**{**usual, **changed})


@pytest.mark.parametrize(
    ("changed", "forced", "why"),
    [
        ({}, False, ""),
        ({"cores": [1, 2]}, False, "cores - -"),
        ({"words": ["numactl", "--membind", "1", "--", "python", "x.py"]}, False, "memory - -"),
        ({"cgroups": b"0::/task_1"}, False, ""),
        ({"cgroups": b"0::/task_1"}, True, "processes - -"),
    ],
)
def test_what_the_engine_gives_to_each_rank_may_forbid_it(changed, forced, why):
    assert order.why_not([of_rank(0), of_rank(1, **changed)], forced=forced) == why


def test_what_all_ranks_have_is_told_from_what_each_has():
    base, forks = order.forks([of_rank(0), of_rank(1, found={b"RANK_ID": b"1", b"A": b"1", b"B": b""})])
    assert base == {b"A": b"1"}
    assert [fork.own for fork in forks] == [{b"RANK_ID": b"0"}, {b"RANK_ID": b"1", b"B": b""}]


def test_forks_that_would_be_no_children_of_ours_are_not_made():
    world = World()
    importing = Importing(world, IMPORTS, lambda *_: None, lambda *_: None, lambda _: None)
    _, forks = order.forks([of_rank(0), of_rank(1)])
    assert importing.refusal({}, forks) == "adopts - -"
    world.children.adopts = True
    assert importing.refusal({}, forks) == ""


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("late - 30", "after 30 s not all ranks of the host had connected"),
        ("folder - /a b\tNo space left on device", "/a b cannot be written: No space left on device"),
        ("differs - OMP_NUM_THREADS", "OMP_NUM_THREADS is read at the import, and differs from rank to rank"),
        ("error heavy ValueError: \x1b[2J", r"the import of heavy failed: ValueError: \x1b[2J"),
        ("", "the import of  failed: "),
    ],
)
def test_reasons_are_for_people(told, text):
    assert reasons.text(told) == text


def test_something_else_than_text_can_be_watched():
    world, waiting, taken = World(), [b"one", b"two", b""], []

    def get(descriptor, _):
        if not waiting:
            raise BlockingIOError
        return waiting.pop(0)

    out, end = os.pipe()
    world.watch(out, lambda block: taken.append(block) or (), get)
    world.events(0)
    assert taken == [b"one", b"two", b""]
    os.close(end)
