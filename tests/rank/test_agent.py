"""The agent that starts each rank for an engine (tools/rank/agent.py), without an engine: this test is one."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tools.engines.agents import AGENT

MARK = "agents-of-the-tests"


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """agent(WORD...): an agent whose trainer are these words; variables: of its environment."""
    started = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "launch.json").touch()

    def start(*words, engine=(), program=AGENT, **variables):
        told = {
            "LAUNCH_ENGINE": "mpirun",
            "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "RANK_SIZE": "1",
            "LOG_DIR": str(tmp_path),
            "LAUNCH_DEVICES": "0",
            "LAUNCH_EXPORTS": "RANK_SIZE LOG_DIR",
            "LAUNCH_SIZES": "1x1",
            "LAUNCH_FOLDER": str(tmp_path),
            "LAUNCH_HOST": os.uname().nodename,
            "LAUNCH_LOGS": str(tmp_path),
            "LAUNCH_UMASK": "0022",
            "LAUNCH_HANG": "0",
            "LAUNCH_GRACE": "5",
            "LAUNCH_SECRET": "tell",
            "LAUNCH_JOB": f"{MARK}-{os.getpid()}",
            "LAUNCH_PYTHON": sys.executable,
            **variables,
        }
        told = {name: text for name, text in told.items() if text is not None}
        words = [*engine, sys.executable, "-I", "-S", program, *words]
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(words, env={"PATH": os.environ["PATH"], **told}, **options))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def said(agent):
    """The next line that it tells, without the secret."""
    while (line := agent.stdout.readline()) == "\n":
        pass
    assert line.startswith(".tell ")
    return line[len(".tell ") : -1]


def trainer_of(agent):
    """The process of its trainer, which has started."""
    found = re.fullmatch(r"start 0 (\d+) \S+", said(agent))
    assert found
    return int(found[1])


def read(path):
    """What is in the file; nothing, if it is not there yet."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def comes(text, path):
    """Waits until this text is in the file."""
    end = time.monotonic() + 300
    while text not in read(path):
        assert time.monotonic() < end, f"{path}: {read(path)}"
        time.sleep(0.02)


def gone(pid):
    """Waits until nothing of it runs."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return
        except OSError:
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} still runs")


def test_it_tells_the_start_and_the_end_of_its_trainer(agent):
    one = agent("sh", "-c", "echo a line; exit 3")
    trainer_of(one)
    assert said(one) == "exit 0 3"
    one.send_signal(signal.SIGURG)  # it waits for the order to stop
    assert one.wait() == 0  # so that the engine does not end the other ranks in its own way
    assert read("rank_0.log") == "a line\n"


@pytest.mark.thorough
def test_a_trainers_end_and_an_order_in_the_same_moment_tell_the_trainers_own_status(agent):
    for _ in range(20):
        one = agent("sleep", "60")
        os.kill(trainer_of(one), signal.SIGTERM)
        end = time.monotonic() + 300
        while one.poll() is None and time.monotonic() < end:  # the launcher, too, gives an order more than once
            one.send_signal(signal.SIGURG)
        assert (one.returncode, said(one)) == (0, "exit 0 143")


@pytest.mark.parametrize("watch", ["yes", ""])
def test_the_first_agent_of_a_host_tells_what_it_has_unless_nobody_watches(agent, watch):
    one = agent("true", LAUNCH_SIZES="1x2", LAUNCH_WATCH=watch)
    lines = [line for line in one.communicate()[0].splitlines() if line.startswith(".tell has 0 ")]
    assert len(lines) == bool(watch)


def test_the_order_to_stop_reaches_the_trainers_group_and_sigkill_what_ignores_it(agent):
    one = agent("sh", "-c", "trap '' TERM; sleep 60 & echo $! >child; while :; do sleep 1; done", LAUNCH_GRACE="1")
    trainer = trainer_of(one)
    comes("\n", "child")
    one.send_signal(signal.SIGURG)
    assert (said(one), one.wait()) == ("exit 0 137", 0)
    gone(trainer)
    gone(int(read("child")))


def test_signals_for_the_trainer_reach_it_as_orders(agent):
    script = "trap 'echo usr1' USR1; trap 'echo usr2; exit 5' USR2; echo ready >ready; while :; do sleep 0.05; done"
    one = agent("sh", "-c", script)
    trainer_of(one)
    comes("ready", "ready")
    one.send_signal(signal.SIGUSR1)
    comes("usr1", "rank_0.log")
    one.send_signal(signal.SIGUSR2)
    assert said(one) == "exit 0 5"


@pytest.mark.parametrize("order", [".stop\n", None])
def test_orders_of_srun_are_lines_and_their_end_is_the_launchers(agent, order):
    one = agent("sleep", "60", LAUNCH_CONTROL="stdin")
    trainer_of(one)
    if order:
        one.stdin.write(order[:3])
        one.stdin.flush()
        one.stdin.write(order[3:])
        one.stdin.flush()
    else:
        one.stdin.close()
        one.stdin = None
    assert (said(one), one.wait()) == ("exit 0 143", 0)


def test_an_engine_that_ends_the_job_is_told_once_and_shortens_the_grace_time(agent):
    one = agent(
        "sh",
        "-c",
        "trap '' TERM; echo ready >ready; while :; do sleep 0.1; done",
        LAUNCH_GRACE="600",
        LAUNCH_PATIENCE="1",
    )
    trainer_of(one)
    comes("ready", "ready")
    one.send_signal(signal.SIGTERM)
    assert said(one) == "cancelled"
    one.send_signal(signal.SIGTERM)
    assert (said(one), one.wait()) == ("exit 0 137", 143)


def test_sigkill_of_the_agent_ends_the_trainer(agent):
    one = agent("sleep", "60")
    trainer = trainer_of(one)
    one.kill()
    gone(trainer)


def test_a_signal_that_hits_the_trainer_a_moment_before_the_agent_explains_its_end(agent):
    one = agent("sleep", "60")
    trainer = trainer_of(one)
    os.kill(trainer, signal.SIGTERM)
    gone(trainer)
    one.send_signal(signal.SIGTERM)
    assert [said(one), said(one)] == ["cancelled", "exit 0 143"]


def test_sigkill_of_the_engine_ends_the_trainer(agent):
    one = agent("sleep", "60", engine=("sh", "-c", '"$@"; :', "-"))
    trainer_of(one)
    one.kill()
    assert said(one) == "exit 0 143"


def test_an_agent_that_can_start_no_watcher_is_a_rank_that_could_not_start(agent, tmp_path):
    spoilt = tmp_path / "spoilt.py"
    lines = ["def fork(*_):", "    raise BlockingIOError", "World.fork = fork", "os._exit(agent.main(sys.argv[1:]))"]
    begin = [f"import os, sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.dirname(AGENT)))!r})"]
    begin += ["from tools.rank import agent", "from tools.supervise.world import World"]
    spoilt.write_text("\n".join([*begin, *lines]))
    one = agent("true", program=str(spoilt), LAUNCH_KEEPS_GOING="yes")
    assert said(one) == "exit 0 78"
    assert one.wait() == 0


def test_a_trainer_that_cannot_be_started(agent):
    one = agent("./none")
    assert re.fullmatch(r"start 0 \d+ \S+", said(one)) and said(one) == "exit 0 127"
    assert read("rank_0.log") == "./none: No such file or directory\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", ["", "x", "-1", "0x0", "a[$(touch ran)]", "1 2", "\u0661", "123456789"])
def test_an_agent_whose_engine_gives_it_no_number_is_no_rank_and_runs_nothing(agent, number):
    for name, text in (
        ("OMPI_COMM_WORLD_RANK", f"'{number}', on its host '0'"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", f"'0', on its host '{number}'"),
    ):
        one = agent("touch", "ran", **{name: number})
        out, error = one.communicate()
        assert (one.returncode, out) == (78, "")
        assert error.endswith(f": no rank: mpirun numbers it {text}\n")
    assert not os.path.exists("ran") and not os.path.exists("rank_0.log")


def test_without_a_launcher_that_reads_it_the_agent_becomes_the_trainer(agent):
    one = agent("sh", "-c", "echo $$; env; exit 7", LAUNCH_SECRET="", LAUNCH_JOB=None)
    assert one.communicate() == ("", "")
    assert one.returncode == 7
    pid, *lines = read("rank_0.log").splitlines()
    assert int(pid) == one.pid
    assert "RANK_ID=0" in lines and "DEVICE_ID=0" in lines
    assert not [line for line in lines if line.startswith("LAUNCH_")]


def test_the_trainer_has_the_contract_and_none_of_our_variables(agent):
    one = agent("env", RANK_ID="stale", MS_NODE_ID="stale", LAUNCH_FOR_RANKS_MINE="a=b", LAUNCH_CONTROL="")
    trainer_of(one)
    assert said(one) == "exit 0 0"
    found = dict(line.split("=", 1) for line in read("rank_0.log").splitlines())
    assert (found["RANK_ID"], found["MINE"], "MS_NODE_ID" in found) == ("0", "a=b", False)
    assert [name for name in found if name.startswith("LAUNCH_")] == ["LAUNCH_JOB"]


REQUEST = "cat request.json >>seen; exit 0"


@pytest.mark.parametrize(
    ("order", "value"), [(signal.SIGALRM, 1), (signal.SIGTERM, 1), (signal.SIGURG, 0), (signal.SIGUSR1, 1)]
)
def test_the_trainer_can_tell_a_request_to_end_from_a_failure_when_the_signal_comes(agent, order, value):
    one = agent("sh", "-c", f"trap '{REQUEST}' TERM USR1; echo >ready; while :; do sleep 0.05; done", LAUNCH_ASK="60")
    trainer_of(one)
    comes("\n", "ready")
    one.send_signal(order)
    assert [said(one) for _ in range(1 + (order == signal.SIGTERM))][-1] == "exit 0 0"
    assert read("seen") == f'{{"GracefulExit": {value}}}\n'


def test_a_request_has_a_time_of_its_own(agent):
    script = "trap '' TERM; echo >ready; while :; do sleep 0.1; done"
    one = agent("sh", "-c", script, LAUNCH_GRACE="600", LAUNCH_ASK="1")
    trainer_of(one)
    comes("\n", "ready")
    one.send_signal(signal.SIGALRM)
    assert (said(one), one.wait()) == ("exit 0 137", 0)


def test_a_request_of_srun_is_a_line_and_usr1_of_slurm_itself_is_told(agent):
    script = f"trap '{REQUEST}' TERM; echo >ready; while :; do sleep 0.05; done"
    one = agent("sh", "-c", script, LAUNCH_CONTROL="stdin", LAUNCH_ASK="60")
    trainer_of(one)
    comes("\n", "ready")
    one.send_signal(signal.SIGUSR1)
    assert (said(one), read("request.json")) == ("warned", '{"GracefulExit": 1}\n')
    one.stdin.write(".ask\n")
    one.stdin.flush()
    assert (said(one), read("seen")) == ("exit 0 0", '{"GracefulExit": 1}\n')


def test_a_trainer_that_usr1_would_only_kill_gets_sigterm_and_the_launcher_learns_it(agent):
    one = agent("sleep", "60")
    trainer_of(one)
    one.send_signal(signal.SIGUSR1)
    assert [said(one), said(one)] == ["asked 0", "exit 0 143"]
