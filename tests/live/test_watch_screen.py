"""The live screen in a terminal, as a person sees it: tools/watch.py, and a launch with --console table."""

import errno
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

import pytest
from suite.needs import needs_packages

from hccl_tools.common import project

pytestmark = [pytest.mark.thorough, needs_packages("pyte")]

TRAINER = """
import os, sys, time
rank, slow = int(os.environ["RANK_ID"]), 3
for step in range(1, int(os.environ["STEPS"]) + 1):
    time.sleep(0.02)
    ms = 80 if rank == slow else 50
    print(f"epoch: 1 step: {step}, loss is {1 / step}")
    print(f"epoch: 1 step: {step}, step time is {ms} ms, 1.0 ms of it for data, 640.0 samples/s", flush=True)
    if os.environ.get("STUB_HANGS") == str(rank):
        time.sleep(1000)
sys.exit(3 if os.environ.get("STUB_FAILS") == str(rank) else 0)
"""
PATIENCE = 60  # seconds: a failure, not a measure


class Terminal:
    """A program on a terminal of its own, whose screen a test reads."""

    def __init__(self, words, columns, lines, **environ):
        import pyte

        self.screen = pyte.Screen(columns, lines)
        self.all = b""
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self._fd = pty.fork()
        if not self.pid:
            exported = {"COLUMNS": str(columns), "LINES": str(lines)}  # GNU readline, in Python say, exports them
            os.environ.update({"TERM": "xterm-256color", "LANG": "C.UTF-8", **exported, **environ})
            os.environ.pop("NO_COLOR", None)
            os.execvp(words[0], words)
        self.resize(columns, lines)

    def resize(self, columns, lines):
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def type(self, keys):
        os.write(self._fd, keys)

    def read(self, seconds):
        """Shows what comes within that time; False at the end."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.all += data
        self._stream.feed(data)
        return bool(data)

    def wait_for(self, *texts, absent=()):
        """Until the screen has these texts, and not those."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if all(text in self.text for text in texts) and not any(text in self.text for text in absent):
                return
            if not self.read(0.2):
                break
        pytest.fail(f"not on the screen: {texts}; it has:\n{self.text}")

    def wait_for_rows(self, expected):
        """Until the table begins its rows so: what is read may be half of a new screen."""
        end = time.monotonic() + PATIENCE
        rows = None
        while rows != expected:
            if time.monotonic() > end or not self.read(0.2):
                pytest.fail(f"the rows are {rows}, not {expected}; the screen has:\n{self.text}")
            rows = [line.split()[:2] for line in self.text.splitlines() if line[:2] in ("0 ", "1 ", "2 ", "3 ")]

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def end(self):
        """The exit code, once the program has ended."""
        end = time.monotonic() + PATIENCE
        while self.read(0.2):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def world(tmp_path, monkeypatch):
    """The folder where a test launches."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAINER)
    return tmp_path


def launched(*options, **environ):
    """A launch of four ranks on a terminal of 80 columns and 24 lines."""
    words = ["bash", project.path("scripts", "launch.sh"), "--device_target", "CPU", "-n", "4", *options, "train.py"]
    return Terminal(words, 80, 24, **{"STEPS": "100000", "PYTHON": sys.executable, **environ})


def watched(*words, columns=80, lines=24):
    return Terminal([sys.executable, project.path("tools", "watch.py"), *words], columns, lines)


@pytest.fixture
def job(world):
    """A launch that trains, until the test ends."""
    found = launched()
    found.wait_for("4 ranks on devices 0-3")
    yield found
    os.kill(found.pid, signal.SIGTERM)
    found.end()


def test_the_screen_names_the_slow_rank_first_and_a_key_leaves_it(job):
    with_screen = watched()
    with_screen.wait_for("launch.sh, 4 ranks, runs for", "rank 3 (device 3 of ", "takes 1.6 times", "q quit")
    with_screen.wait_for_rows([["3", "slow"], ["0", "trains"], ["1", "trains"], ["2", "trains"]])
    with_screen.type(b"p")
    with_screen.wait_for("3          slow", absent=["0          trains"])
    with_screen.type(b"\r")
    with_screen.wait_for("rank_3.log", "step time is 80 ms", "Esc back")
    with_screen.type(b"\x1b")
    with_screen.wait_for("q quit")
    with_screen.type(b"q")
    assert with_screen.end() == 0
    assert with_screen.all.rstrip().endswith(b"\x1b[?25h\x1b[?1049l")  # the cursor, and the usual screen


@pytest.mark.parametrize(("columns", "lines"), [(20, 6), (200, 50)])
def test_a_terminal_of_another_size(job, columns, lines):
    with_screen = watched()
    with_screen.wait_for("takes 1.6 times")
    with_screen.resize(columns, lines)
    with_screen.wait_for("launch.sh, 4 ranks", "q quit", absent=[] if columns > 80 else ["samples/s"])
    with_screen.type(b"q")
    assert with_screen.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(job, number):
    with_screen = watched()
    with_screen.wait_for("q quit")
    os.kill(with_screen.pid, number)
    assert with_screen.end() == 128 + number
    assert b"\x1b[?1049l" in with_screen.all


def test_it_ends_with_the_job_and_its_exit_code(world):
    job = launched(STEPS="300", STUB_FAILS="1")
    job.wait_for("4 ranks on devices 0-3")
    with_screen = watched()
    with_screen.wait_for("runs for")
    assert job.end() == 3
    assert with_screen.end() == 3
    assert "failed 3" in with_screen.text
    assert "the job ended with 3; why: python " in with_screen.text


def test_a_launch_with_a_table_shows_its_messages_on_the_screen_and_after_it(world):
    job = launched("--console", "table", "--max_restarts", "1", STEPS="150", STUB_FAILS="1")
    job.wait_for("launch.sh, 4 ranks, runs for", "trains", "q quit")
    job.wait_for("restart 1", "takes 1.6 times")
    assert job.end() == 3
    assert b"rank 1 (device 1) exited with code 3" in job.all.rpartition(b"\x1b[?1049l")[2]
    assert "exit 3; logs and launch.json" in job.text.replace("\n", "")
    assert not termios_changed(job)


def test_what_is_said_after_the_screen_comes_too(world):
    """The process of --straggler says at the end that it had nothing to compare."""
    words = ["bash", project.path("scripts", "launch.sh"), "--device_target", "CPU", "-n", "1"]
    job = Terminal(
        [*words, "--console", "table", "--straggler", "1.5", "train.py"], 80, 24, STEPS="1", PYTHON=sys.executable
    )
    assert job.end() == 0
    assert job.all.rpartition(b"\x1b[?1049l")[2].count(b"--straggler had nothing to compare") == 1


def test_a_message_from_before_the_first_frame_is_not_lost(world):
    job = launched("--console", "table", STEPS="1", STUB_FAILS="1")
    assert job.end() == 3
    assert job.all.rpartition(b"\x1b[?1049l")[2].count(b"rank 1 (device 1) exited with code 3") == 1


def test_after_the_key_q_the_messages_of_a_launch_come_as_ever(world):
    job = launched("--console", "table", "--hang_timeout", "5", STUB_HANGS="0", STEPS="150")
    job.wait_for("q quit")
    job.type(b"q")
    assert job.end() == 124
    assert b"launch.sh: \x1b[1;31mno rank has written" in job.all.rpartition(b"\x1b[?1049l")[2]


def test_a_table_is_for_terminals(world):
    words = [
        "bash",
        "-c",
        f"bash {project.path('scripts', 'launch.sh')} --device_target CPU -n 1 --console table train.py | cat",
    ]
    job = Terminal(words, 80, 24, STEPS="1", PYTHON=sys.executable)
    job.end()
    assert "--console table needs a terminal" in job.text
    assert "loss is 1.0" in job.text


def test_a_screen_that_is_killed_takes_no_message_with_it(world):
    job = launched("--console", "table", STEPS="200", STUB_FAILS="1")
    job.wait_for("q quit")
    os.kill(screen_of(job.pid), signal.SIGKILL)
    assert job.end() == 3
    assert b"rank 1 (device 1) exited with code 3" in job.all.rpartition(b"\x1b[?1049l")[2]


def screen_of(launcher):
    """The process of the screen."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read()
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == launcher and b"mindspore-launch-screen" in words:
            return int(name)
    raise AssertionError("there is no screen")


def termios_changed(job):
    """Whether keys would still come one by one."""
    try:
        return not termios.tcgetattr(job._fd)[3] & termios.ICANON
    except termios.error:  # the terminal is gone
        return False


def test_launch_json_has_no_trace_of_the_screen(world):
    job = launched("--console", "table", STEPS="5")
    assert job.end() == 0
    with open("logs/latest/launch.json", encoding="utf-8") as file:
        assert json.load(file)["outcome"]["exit"] == 0
