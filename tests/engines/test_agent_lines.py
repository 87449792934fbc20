"""What the launcher makes of an engine's output: events, and lines in logs; and the orders that it passes on."""

import json
import os
import shlex
import subprocess
import sys
import types

import documents
import pytest

from tools.engines.agent_lines import LONGEST, AgentLines
from tools.engines.relayed import Relayed
from tools.supervise.events import Began, Cancelled, Ended, Left, LeftFailed, LogGrew, StackTold

FIXTURES = documents.ROOT / "tests" / "fixtures"
STUB = FIXTURES / "stub_trainer.py"


@pytest.fixture
def told(tmp_path):
    """A function: the events in these blocks of bytes, and what is in the engine's own log after them."""

    def tell(*blocks, cancelled=None, ordered=False):
        with open(tmp_path / "engine.log", "wb") as log:
            lines = AgentLines(b"secret", str(tmp_path), log.fileno(), cancelled)
            lines.ordered = ordered
            found = [event for block in (*blocks, b"") for event in lines.take(block)]
        return found, (tmp_path / "engine.log").read_text(), lines

    return tell


def test_many_ranks_share_an_event(told):
    said = "".join(f"\n.secret start {rank} {rank + 100} host{rank}\n" for rank in range(1000)) + "\n.secret exit 7 0\n"
    events, log, _ = told(said.encode())
    assert events == [Began([(str(rank), rank + 100, f"host{rank}") for rank in range(1000)]), Ended([("7", 0)])]
    assert log == ""


def test_a_line_may_come_in_pieces_and_behind_a_label(told):
    assert told(b"[1,3]<stdout>:.sec", b"ret exit 3 ", b"14", b"3\nhello\nwor", b"ld")[:2] == (
        [Ended([("3", 143)])],
        "hello\nworld\n",
    )


def test_what_a_rank_has_left_is_an_event_when_all_of_it_is_told_and_comes_before_the_ranks_end(told):
    said = [b".secret left 1 501 500 python train.py\n", b".secret left 1 502 502 sleep 9\n"]
    said += [b".secret waits 1 option\n.secret exit 1 3\n.secret failed 1 501 python train.py\n"]
    assert told(*said)[0] == [
        Left("1", [(501, 500, "python train.py"), (502, 502, "sleep 9")], "option"),
        LeftFailed("1", 501, "python train.py"),
        Ended([("1", 3)]),
    ]


@pytest.mark.parametrize(
    "line",
    [
        *("exit 1 a[$(touch ran)]", "exit 1", "exit x 3", "exit 1 -3", "exit \u0661 0"),
        *("start ../../x 3 h", "start 1 3", "start 1 3 h h", "start 1 x h"),
        *("line ../x evil", "plog ../x evil", "wrote x", "stack x y", "cancelled 3", "ended a[0]", "engine x", ""),
        *("left 1 x 3 python", "left 1 3", "left ../x 3 3 python", "waits 1 ", "failed 1 x python", "failed 1"),
    ],
)
def test_a_line_that_no_agent_says_is_the_engines(told, tmp_path, line):
    events, log, lines = told(f"label: secret {line}\n".encode())
    assert (events, log, lines.failed) == ([], f"label: secret {line}\n", 0)
    assert os.listdir(tmp_path) == ["engine.log"]


def test_what_a_rank_tells_of_its_own_logs_is_kept(told, tmp_path):
    told(b"secret start 2 77 h\nsecret line 2   two  blanks\nsecret plog 2 [ERROR] x\nsecret line 2 more\n")
    assert (tmp_path / "rank_2.log").read_text() == "  two  blanks\nmore\n"
    assert (tmp_path / "plog/rank_2/debug/plog/plog-77_away.log").read_text() == "[ERROR] x\n"


def test_logs_that_cannot_be_written_end_nothing(told, tmp_path):
    (tmp_path / "rank_2.log").mkdir()
    (tmp_path / "plog").touch()
    assert told(b"secret line 2 lost\nsecret plog 2 lost\nsecret exit 2 1\n")[0] == [Ended([("2", 1)])]


def test_growing_logs_are_told_once_for_all(told):
    assert told(b"secret wrote 1\nsecret wrote 2\nsecret wrote 1\n")[0] == [LogGrew("1")]


def test_where_a_rank_is_comes_before_its_end(told):
    said = b"secret exit 3 134\nsecret stack 3 train.py:7 in step\n"
    assert told(said)[0] == [StackTold("3", "train.py:7 in step"), Ended([("3", 134)])]


def test_ranks_that_the_engine_ends_have_not_failed(told):
    said = ["exit 0 3", "cancelled", "exit 1 143", "cancelled", "exit 2 0"]
    events, _, lines = told("".join(f"secret {words}\n" for words in said).encode())
    assert events == [Ended([("0", 3)]), Ended([("1", 143), ("2", 0)], judged=False)]
    assert lines.failed == 143


def test_after_our_own_order_they_are_told_as_ever(told):
    assert told(b"secret cancelled\nsecret exit 1 143\n", ordered=True)[0] == [Ended([("1", 143)])]


def test_what_slurm_cancels_is_told_in_its_words(told):
    event = Cancelled(30, "Slurm kills")
    assert told(b"secret cancelled\nsecret exit 1 143\n", cancelled=event)[0] == [event, Ended([("1", 143)])]


def test_a_line_without_an_end_is_not_kept_for_ever(told):
    _, log, _ = told(b"x" * LONGEST, b"y")
    assert log == "x" * LONGEST + "y\n"


# ---- orders ----------------------------------------------------------------------------------------


def engine(pid, by_stdin=False):
    """An engine of this process id that runs, and that has got no orders yet; what reads its orders."""
    member = types.SimpleNamespace(pid=pid, group=pid, status=None)
    run = types.SimpleNamespace(supervisor=types.SimpleNamespace(members={"mpirun": member}))
    found = Relayed.__new__(Relayed)
    found.run, found.name, found.orders_by_stdin = run, "mpirun", by_stdin
    found.lines = AgentLines(b"secret", "", -1, None)
    orders, found._orders = os.pipe()
    return found, orders


@pytest.mark.parametrize(("word", "signals"), [("stop", "URG"), ("stacks", "ABRT"), ("USR1", "USR1"), ("USR2", "USR2")])
def test_orders_to_mpirun_are_signals(word, signals):
    catch = f"trap 'echo got {signals}; exit 4' {signals}; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(["bash", "-c", catch], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        mpirun, _ = engine(process.pid)
        mpirun.order(word)
        assert process.stdout.read() == f"got {signals}\n"
    assert process.returncode == 4
    assert mpirun.lines.ordered is (word == "stop")


@pytest.mark.parametrize("word", ["stop", "stacks"])
def test_orders_to_srun_are_lines(word):
    srun, orders = engine(os.getpid(), by_stdin=True)
    srun.order(word)
    assert os.read(orders, 100) == f".{word}\n".encode()


def test_an_engine_that_ends_with_0_after_it_ended_ranks_has_failed():
    mpirun, _ = engine(os.getpid())
    assert [mpirun.status_of(status) for status in (0, 7)] == [0, 7]
    mpirun.lines.take(b"secret cancelled\nsecret exit 1 143\n")
    assert [mpirun.status_of(status) for status in (0, 7)] == [143, 7]


# ---- the process -----------------------------------------------------------------------------------


@pytest.fixture
def launch(tmp_path):
    """A function: (exit code, launch.json, mpirun.log) of a launch whose mpirun is this line of bash."""

    def start(engine, options=""):
        program = tmp_path / "bin" / "mpirun"
        program.parent.mkdir()
        say = (
            """[[ $* != *--version* ]] || exec echo 'mpirun (Open MPI) 4.1.4'\nsay() { echo "$LAUNCH_SECRET $*"; }\n"""
        )
        program.write_text(f"#!/usr/bin/env bash\n{say}{engine}\n")
        program.chmod(0o755)
        (tmp_path / "config.yaml").write_text("system:\n  distribute: True\n")
        words = f"-n 2 {options} --device_target CPU --train_script {STUB} config.yaml"
        command = f"bash {documents.ROOT}/scripts/run_mpirun.sh {words}"
        path = f"{program.parent}:{os.environ['PATH']}"
        ours = {
            "PATH": path,
            "PYTHON": sys.executable,
            "LAUNCH_LANG": "en",
            "PYTHONPATH": str(FIXTURES / "stub_mindspore"),
            "STUB_OUT": str(tmp_path),
        }
        env = {**os.environ, **ours}
        ended = subprocess.run(shlex.split(command), cwd=tmp_path, env=env, capture_output=True, timeout=300)
        run = tmp_path / "logs" / "latest"
        return ended.returncode, json.loads((run / "launch.json").read_text()), (run / "mpirun.log").read_text()

    return start


ALL_WELL = "say start 0 400000 h; say start 1 400001 h; say exit 0 0; say exit 1 0; printf last; "


@pytest.mark.slow
@pytest.mark.parametrize(("end", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_the_end_of_the_engine_is_kept_and_its_ranks_count(launch, end, status):
    code, document, log = launch(ALL_WELL + end)
    members = document["outcome"]["members"]
    assert (code, log) == (0, "last\n")
    assert [members[name]["status"] for name in ("0", "1", "mpirun")] == [0, 0, status]


@pytest.mark.slow
def test_ranks_that_mpirun_ends_because_of_one_that_nobody_knows(launch):
    """An agent was killed: mpirun ends the others, and then with 0."""
    code, document, _ = launch("say start 0 400000 h; say start 1 400001 h; say cancelled; say exit 1 143")
    assert (code, document["outcome"]["members"]["mpirun"]["status"]) == (143, 143)


@pytest.mark.slow
def test_what_an_attempt_has_left_behind_says_nothing_of_the_next_one(launch, tmp_path):
    wait = "until [[ -e {} ]]; do sleep 0.05; done"
    late = f'trap "" PIPE; touch away; {wait.format("second")}; echo "$S exit 0 9"; touch late'
    leave = f"""touch first; env -i S="$LAUNCH_SECRET" setsid bash -c '{late}' & {wait.format("away")}"""
    engine = f"""
[[ -e first ]] || {{ {leave}; exit 3; }}
say start 0 $$ here; say start 1 $$ here; touch second
until [[ -e late ]]; do sleep 0.05; done
say exit 0 0; say exit 1 0
"""
    status, _, log = launch(engine, "--max_restarts 1")
    assert (status, log) == (0, "bash: line 1: echo: write error: Broken pipe\n")  # on stderr: nobody reads its stdout
    assert (tmp_path / "logs" / "latest" / "restart_1" / "mpirun.log").read_text() == ""
