"""Pieces of the plan; whole launches are in tests/bats."""

import socket

import pytest

from tools import config as configs
from tools import planner


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], []),
        (["-o", "a=1", "b=2"], ["a=1", "b=2"]),
        (["--opt", "a=1", "--x", "c=3"], ["a=1"]),
        (["x=1"], []),
        (["-o", "a=1", "-o", "b=2"], ["a=1", "b=2"]),
    ],
)
def test_overrides_are_what_follows_o_or_opt(arguments, found):
    assert planner.assignments(arguments) == found


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ([], ["-o", "system.device_target=CPU"]),
        (["--x"], ["--x", "-o", "system.device_target=CPU"]),
        (["-o", "a=1", "--x"], ["-o", "a=1", "system.device_target=CPU", "--x"]),
        (["-o", "a=1", "--x", "-o", "b=2"], ["-o", "a=1", "--x", "-o", "b=2", "system.device_target=CPU"]),
    ],
)
def test_the_target_joins_the_last_override(tmp_path, arguments, result):
    path = tmp_path / "c.yaml"
    path.write_text("system: {device_target: Ascend}\n")
    assert planner.with_target(arguments, configs.load(str(path)), "other.py", "CPU") == result


def test_a_port_that_is_taken_is_not_free():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        assert not planner.is_free(holder.getsockname()[1])


def test_the_schedulers_port_is_below_those_of_outgoing_connections(monkeypatch):
    monkeypatch.delenv("MS_SCHED_PORT", raising=False)
    assert all(10000 <= int(planner.scheduler_port(seed)) < 30000 for seed in (1, 4711, 4194304))


def test_a_schedulers_port_in_use_is_passed_over(monkeypatch):
    monkeypatch.delenv("MS_SCHED_PORT", raising=False)
    first = int(planner.scheduler_port(1))
    monkeypatch.setattr(planner, "is_free", lambda port: port != first)
    assert int(planner.scheduler_port(1)) == first + 1
