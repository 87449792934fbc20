"""What the relay makes of an engine's output: lines on the bus, lines in logs; and the orders that it passes on."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import documents
import pytest

from tools.launch.engines.relay import LINE, LONGEST, Relay

RELAY = documents.ROOT / "tools" / "launch" / "engines" / "relay.py"


@pytest.fixture
def relayed(tmp_path, capfd):
    """A function: what a relay says on the bus after these blocks of bytes; the engine's log is what it prints."""

    def relay(*blocks, cancelled=b"", ordered=False):
        bus, end = os.pipe()
        there = Relay(end, b"secret", os.fsencode(tmp_path), cancelled)
        there.ordered = ordered
        for block in blocks:
            there.take(block)
        there.take(b"", at_end=True)
        os.close(end)
        with open(bus, "rb") as file:
            return file.read().decode().splitlines(), capfd.readouterr().out, there

    return relay


def test_many_ranks_share_a_line(relayed):
    said = "".join(f"\n.secret start {rank} {rank + 100} host{rank}\n" for rank in range(1000)) + "\n.secret exit 7 0\n"
    lines, log, _ = relayed(said.encode())
    assert all(len(line) < LINE + 10 for line in lines) and len(lines) < 10
    assert "".join(line.removeprefix(".began") for line in lines[:-1]).split() == [
        word for rank in range(1000) for word in (str(rank), str(rank + 100), f"host{rank}")
    ]
    assert (lines[-1], log) == (".exit 7 0", "")


def test_a_line_may_come_in_pieces_and_behind_a_label(relayed):
    assert relayed(b"[1,3]<stdout>:.sec", b"ret exit 3 ", b"14", b"3\nhello\nwor", b"ld")[:2] == (
        [".exit 3 143"],
        "hello\nworld\n",
    )


@pytest.mark.parametrize(
    "line",
    [
        *("exit 1 a[$(touch ran)]", "exit 1", "exit x 3", "exit 1 -3", "exit \u0661 0"),
        *("start ../../x 3 h", "start 1 3", "start 1 3 h h"),
        *("line ../x evil", "plog ../x evil", "wrote x", "stack x y", "cancelled 3", "ended a[0]", "engine x", ""),
    ],
)
def test_a_line_that_no_agent_says_is_the_engines(relayed, tmp_path, line):
    lines, log, there = relayed(f"label: secret {line}\n".encode())
    assert (lines, log, there.failed) == ([], f"label: secret {line}\n", 0)
    assert os.listdir(tmp_path) == []


def test_what_a_rank_tells_of_its_own_logs_is_kept(relayed, tmp_path):
    relayed(b"secret start 2 77 h\nsecret line 2   two  blanks\nsecret plog 2 [ERROR] x\nsecret line 2 more\n")
    assert (tmp_path / "rank_2.log").read_text() == "  two  blanks\nmore\n"
    assert (tmp_path / "plog/rank_2/debug/plog/plog-77_away.log").read_text() == "[ERROR] x\n"


def test_logs_that_cannot_be_written_end_nothing(relayed, tmp_path):
    (tmp_path / "rank_2.log").mkdir()
    (tmp_path / "plog").touch()
    assert relayed(b"secret line 2 lost\nsecret plog 2 lost\nsecret exit 2 1\n")[0] == [".exit 2 1"]


def test_growing_logs_are_told_once_for_all(relayed):
    assert relayed(b"secret wrote 1\nsecret wrote 2\nsecret wrote 1\n")[0] == [".wrote 1"]


def test_where_a_rank_is_comes_before_its_end(relayed):
    said = b"secret stack 3 train.py:7 in step\nsecret exit 3 134\n"
    assert relayed(said)[0] == [".stack 3 train.py:7 in step", ".exit 3 134"]


def test_ranks_that_the_engine_ends_have_not_failed(relayed):
    said = ["exit 0 3", "cancelled", "exit 1 143", "cancelled", "exit 2 0"]
    lines, _, there = relayed("".join(f"secret {words}\n" for words in said).encode())
    assert (lines, there.failed) == ([".exit 0 3", ".was 1 143 2 0"], 143)


def test_after_our_own_order_they_are_told_as_ever(relayed):
    assert relayed(b"secret cancelled\nsecret exit 1 143\n", ordered=True)[0] == [".exit 1 143"]


def test_what_slurm_cancels_is_told_in_its_words(relayed):
    lines, *_ = relayed(b"secret cancelled\nsecret exit 1 143\n", cancelled=b"cancelled 30 Slurm kills")
    assert lines == [".cancelled 30 Slurm kills", ".exit 1 143"]


def test_a_line_without_an_end_is_not_kept_for_ever(relayed):
    _, log, there = relayed(b"x" * LONGEST, b"y")
    assert log == "x" * LONGEST + "y\n"


# ---- the process -----------------------------------------------------------------------------------


@pytest.fixture
def start(tmp_path):
    """A function: the relay of the engine, a bash script, as relay.sh starts it; its bus is the file `bus`."""
    with contextlib.ExitStack() as stack:
        yield lambda engine, way="": stack.enter_context(started(tmp_path, engine, way))


def started(tmp_path, engine, way):
    script = f"""
      exec {{pipe}}<> <(:) {{orders}}<> <(:) {{bus}}>"$1"
      run() {{
        bash -c 'echo secret engine $$; eval "$ENGINE"' >"/dev/fd/$pipe" <"/dev/fd/$orders" {{orders}}>&- &
        exec {{orders}}>&-
        wait $!
        printf '\\n.secret ended %d\\n' $? >&$pipe
      }}
      set -m
      run &
      set +m
      trap '' TERM ABRT USR1 USR2
      exec {sys.executable} -I -S {RELAY} "$!" "$pipe" "$orders" "$bus" "{way}" ""
    """
    env = {**os.environ, "LAUNCH_SECRET": "secret", "LAUNCH_LOGS": str(tmp_path), "ENGINE": engine}
    words = ["bash", "-c", script, "-", str(tmp_path / "bus")]
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("engine", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_it_ends_as_its_engine_does(start, tmp_path, engine, status):
    relay = start(f"echo secret exit 1 0; printf last; {engine}")
    assert relay.communicate(timeout=30)[0] == "last\n"
    assert relay.returncode == status
    assert (tmp_path / "bus").read_text() == ".exit 1 0\n"


def test_an_engine_that_ends_with_0_after_it_ended_ranks_has_failed(start):
    relay = start("echo secret cancelled; echo secret exit 1 143")
    relay.communicate(timeout=30)
    assert relay.returncode == 143


@pytest.mark.parametrize(
    ("number", "signals"),
    [(signal.SIGTERM, "URG"), (signal.SIGABRT, "ABRT"), (signal.SIGUSR1, "USR1"), (signal.SIGUSR2, "USR2")],
)
def test_orders_to_mpirun_are_signals(start, number, signals):
    catch = f"trap 'echo got {signals}; exit 4' {signals}; echo ready; while :; do sleep 0.05; done"
    relay = start(catch)
    assert relay.stdout.readline() == "ready\n"
    until(lambda: relay.send_signal(number) or relay.poll() is not None)  # an order may come too early: it is repeated
    assert set(relay.stdout.read().splitlines()) == {f"got {signals}"}  # twice, if an order comes while it ends
    assert relay.returncode == 4


def test_orders_to_srun_are_lines(start):
    relay = start("echo ready; read -r line; echo got $line", way="stdin")
    assert relay.stdout.readline() == "ready\n"
    until(lambda: relay.send_signal(signal.SIGTERM) or relay.poll() is not None)
    assert relay.stdout.read() == "got .stop\n"


def test_an_engine_whose_shell_was_killed_counts_as_killed(start):
    relay = start("echo ready $PPID; sleep 60")
    runner = int(relay.stdout.readline().split()[1])
    os.kill(runner, signal.SIGKILL)
    assert relay.wait(timeout=30) == 137
    os.killpg(runner, signal.SIGKILL)


def test_the_engines_stdin_ends_with_the_relay(start, tmp_path):
    relay = start(f"echo ready; cat; touch {tmp_path}/ended")
    assert relay.stdout.readline() == "ready\n"
    relay.kill()
    until((tmp_path / "ended").exists)


def test_it_imports_nothing_that_takes_time():
    """With `signal` or `subprocess` it would start in twice the time."""
    words = [sys.executable, "-I", "-S", "-X", "importtime", str(RELAY), "0"]  # it refuses this at once
    env = {name: value for name, value in os.environ.items() if name != "LAUNCH_SECRET"}
    said = subprocess.run(words, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL).stderr
    assert "IndexError" in said or "ValueError" in said
    slow = {"signal", "subprocess", "typing"}
    if sys.version_info < (3, 13):  # from then on Python imports these for a traceback
        slow |= {"enum", "re"}
    assert {line.rpartition("|")[2].strip() for line in said.splitlines()} & slow == set()
