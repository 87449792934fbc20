"""Collectors run beside each other, and none can cost the others their facts."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from hccl_tools.common import project
from tools.preflight import probe
from tools.preflight.probe import Collector


def hang():
    threading.Event().wait()


def hang_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 16))
    hang()


def test_facts_of_all_are_together_and_the_first_that_is_known_counts():
    found = probe.run_collectors(
        {
            "a": Collector(lambda: {"x": None, "y": 1}, 60),
            "b": Collector(lambda: {"x": "2", "y": 3, "z": ("4",)}, 60),
        }
    )
    assert found == ({"x": "2", "y": 1, "z": ["4"]}, {})


def test_one_that_raises_one_that_dies_and_one_that_hangs_cost_only_their_own_facts():
    def raises():
        raise OSError(5, "Input/output error")

    found, failed = probe.run_collectors(
        {
            "well": Collector(lambda: {"x": 1}, 60),
            "raises": Collector(raises, 60),
            "dies": Collector(lambda: os.kill(os.getpid(), signal.SIGKILL), 60),
            "hangs": Collector(hang, 0.01),
            "stuck in a call": Collector(hang_deaf, 0.01),
        }
    )
    assert found == {"x": 1}
    assert failed == {
        "raises": "OSError: [Errno 5] Input/output error",
        "dies": "it ended without an answer",
        "hangs": "no answer within 0.01 s",
        "stuck in a call": "no answer within 0.01 s",
    }


@pytest.fixture
def forks(monkeypatch):
    """A list that gets an item for each child."""
    made, fork = [], os.fork

    def counted():
        made.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", counted)
    return made


def test_one_child_serves_all_that_take_no_time_and_what_takes_long_has_its_own(forks):
    many = {f"c{at}": Collector(lambda at=at: {"pid": os.getpid(), f"x{at}": os.getpid()}, 60) for at in range(12)}
    found, failed = probe.run_collectors({**many, "long": Collector(lambda: {"long": os.getpid()}, 60, alone=True)})
    assert len(forks) == 2 and failed == {}
    assert len({found[f"x{at}"] for at in range(12)}) == 1 and found["long"] != found["x0"]


def test_after_one_that_hangs_those_behind_it_run_and_none_twice(forks):
    collectors = {
        "before": Collector(lambda: {"before": os.getpid()}, 60),
        "hangs": Collector(hang, 0.01),
        "b": Collector(lambda: {"b": os.getpid()}, 60),
        "c": Collector(lambda: {"c": os.getpid()}, 60),
    }
    found, failed = probe.run_collectors(collectors)
    assert failed == {"hangs": "no answer within 0.01 s"}
    assert sorted(found) == ["b", "before", "c"] and len(set(found.values())) == len(forks) == 3


def test_what_a_collector_prints_does_not_reach_the_answer(capfd):
    def prints():
        os.write(1, b"noise")
        os.write(2, b"noise")
        return {"stdin": os.read(0, 1).decode()}

    assert probe.run_collectors({"a": Collector(prints, 60)}) == ({"stdin": ""}, {})
    assert capfd.readouterr() == ("", "")


def test_facts_that_are_too_many_are_refused_and_large_ones_arrive():
    large = "x" * (1 << 19)
    found, failed = probe.run_collectors(
        {"large": Collector(lambda: {"a": large}, 60), "huge": Collector(lambda: {"b": large * 4}, 60)}
    )
    assert (found, failed) == ({"a": large}, {"huge": "it ended without an answer"})


def test_no_child_is_left_and_no_pipe():
    pipes, before = len(os.listdir("/proc/self/fd")), children()
    probe.run_collectors({"a": Collector(lambda: {}, 60)})
    assert len(os.listdir("/proc/self/fd")) == pipes
    assert children() <= before  # other tests of this process may have some


def children():
    """The ids of this process's children, also of those that have ended and that nobody has waited for."""
    found = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parent = file.read().rpartition(")")[2].split()[1]
        except OSError:  # it has ended meanwhile
            continue
        found |= {int(name)} if int(parent) == os.getpid() else set()
    return found


def test_the_program_that_every_host_runs_imports_little():
    text = f"import sys; sys.path.insert(0, {project.ROOT!r}); import tools.preflight.probe; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=True)
    slow = {"argparse", "email", "importlib.metadata", "logging", "pathlib", "subprocess", "threading", "typing"}
    assert slow.intersection(done.stdout.split()) == set()
