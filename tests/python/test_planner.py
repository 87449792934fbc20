"""Pieces of the plan; whole launches are in tests/bats."""

import socket

import pytest

from tools.config import config_file as configs
from tools.launch import plan as planner


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


# ---- two launches at once, on hosts or in containers that share the folder for logs ---------------------


def test_a_run_folder_is_none_that_is_there(tmp_path, monkeypatch):
    moment = planner.time.gmtime(0)
    monkeypatch.setattr(planner.time, "gmtime", lambda: moment)
    asked = {"script": "run.sh", "log_dir": str(tmp_path), "job_pid": "24"}
    for expected in ("run-19700101T000000Z-24", "run-19700101T000000Z-24-2", "run-19700101T000000Z-24-3"):
        path = planner.run_folder(asked)
        assert path == str(tmp_path / expected)
        planner.make_folder(path)


def test_a_folder_that_another_host_makes_in_between_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plans = []

    def make_plan(asked, _):
        plan = planner.Plan()
        plan.run_dir = planner.run_folder(asked)
        plan.ranks = [(0, 0)]
        plan.placement = planner.placement.Placement(plan.ranks)
        plans.append(plan)
        if len(plans) == 1:
            planner.os.makedirs(plan.run_dir)  # the other host's
        return plan

    monkeypatch.setattr(planner, "make_plan", make_plan)
    plan = planner.begin(
        {"script": "run.sh", "log_dir": "logs", "job_pid": "24", "device_target": "CPU", "engine": "local"}, []
    )
    assert plan is plans[1] and plan.run_dir == plans[0].run_dir + "-2"
    assert (tmp_path / "logs" / "latest" / "launch.json").exists()
    assert not planner.os.listdir(plans[0].run_dir)


def test_a_folder_that_cannot_be_made_is_not_tried_again(tmp_path):
    (tmp_path / "logs").write_text("")
    with pytest.raises(OSError):
        planner.make_folder(str(tmp_path / "logs" / "run"))
