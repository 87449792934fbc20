"""The plan as shell commands."""

import os
from types import SimpleNamespace

import pytest

from tools.engines.agents import Agents
from tools.launch import dry_run
from tools.launch.engines.facts import LocalFacts
from tools.launch.programs.import_once import Imports
from tools.rank import environment


class Engine(Agents):
    """An engine of which nothing is known but its command."""

    name = "starter"

    def command(self, environment_):
        return ["starter", "-n", "2"]


def plan(**facts):
    usual = {
        "ranks": [(4, 0), (5, 1)],
        "run_dir": "/logs/a run",
        "about": "the program x.py",
        "sizes": [4, 4],
        "engine": LocalFacts(),
        "request": SimpleNamespace(device_target="Ascend", per_rank_words=False, defaults="", engine="local"),
        "exports": {"RANK_SIZE": "8", "LOG_DIR": "/logs/a run"},
        **dict.fromkeys(("table", "resumed", "binding", "plogs", "rank_files", "imports", "hccl")),
        **dict.fromkeys(("restart", "scheduler"), []),
    }
    return SimpleNamespace(**{**usual, **facts})


def run_of(found, engine=None, **caller):
    """The launch of a plan, as far as it is printed."""
    run = SimpleNamespace(
        plan=found,
        voice=SimpleNamespace(name="x.sh"),
        environment=environment.job({os.fsencode(name): value for name, value in caller.items()}, found.exports),
        trainer=["python", "x y.py"],
        logs=found.run_dir,
        mark="job@host",
        engine=SimpleNamespace(scheduler_words=lambda: found.scheduler),
        settings=SimpleNamespace(hang_timeout=0),
        command=SimpleNamespace(mpirun=SimpleNamespace(values={"A": "b c"})),
    )
    if engine:
        run.engine = engine(run)
    return run


@pytest.fixture(autouse=True)
def english(monkeypatch, tmp_path):
    from hccl_tools.common import language

    monkeypatch.setattr(language, "_catalogue", lambda: None)
    monkeypatch.chdir(tmp_path)


def test_ranks_of_this_host_with_their_own_variables(tmp_path):
    assert list(dry_run.lines(run_of(plan(restart=["python", "again"]), RANK=b"7", RANK_ID=b"9"))) == [
        "# x.sh: 2 ranks; this is what it would start",
        "# every rank runs the program x.py",
        "# from the second attempt on it runs: python again",
        f"cd {tmp_path}",
        r"mkdir -p /logs/a\ run",
        *(f"unset {name}" for name in environment.CONTRACT if name not in ("RANK_SIZE", "LOG_DIR")),
        r"export RANK_SIZE=8 LOG_DIR=/logs/a\ run",
        "# rank 4 on device 0",
        "env RANK_ID=4 DEVICE_ID=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 SERVER_ID=1 DEVICE_NUM=4 "
        r"python x\ y.py >/logs/a\ run/rank_4.log 2>&1 </dev/null &",
        "# rank 5 on device 1",
        "env RANK_ID=5 DEVICE_ID=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 SERVER_ID=1 DEVICE_NUM=4 "
        r"python x\ y.py >/logs/a\ run/rank_5.log 2>&1 </dev/null &",
        "wait",
    ]


def test_scheduler_cores_plogs_and_what_makes_tables_and_checkpoints():
    found = plan(
        ranks=[(0, 3)],
        sizes=[1],
        engine=LocalFacts(device_ids=[13]),
        exports={"MS_WORKER_NUM": "1", "MS_SCHED_HOST": "127.0.0.1"},
        scheduler=["schedule"],
        binding=SimpleNamespace(cores={0: [2, 5]}, memory={0: [1]}),
        plogs=SimpleNamespace(word=lambda: "failed /my plogs"),
        table=SimpleNamespace(setup=("make", "table")),
        resumed=SimpleNamespace(convert=["convert", "it"], where=lambda: "after epoch 1"),
    )
    printed = list(dry_run.lines(run_of(found)))
    assert printed[1] == "# every rank runs the program x.py; it continues after epoch 1"
    assert printed[4:6] == ["make table", "convert it"]
    assert printed[-6:] == [
        "# the scheduler of MindSpore's cluster",
        r"env -u RANK_TABLE_FILE MS_ROLE=MS_SCHED schedule >/logs/a\ run/scheduler.log 2>&1 </dev/null &",
        "# rank 0 on device 3, DEVICE_ID 13",
        r"mkdir -p /my\ plogs/rank_0",
        "env RANK_ID=0 DEVICE_ID=13 MS_ROLE=MS_WORKER MS_NODE_ID=0 RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 SERVER_ID=0 "
        r"DEVICE_NUM=1 MSRUN_CPU_LIST=\[2\,5\] ASCEND_PROCESS_LOG_PATH=/my\ plogs/rank_0 taskset -c 2,5 "
        r"numactl --membind 1 -- python x\ y.py >/logs/a\ run/rank_0.log 2>&1 </dev/null &",
        "wait",
    ]


def test_what_is_imported_once_is_a_comment_because_a_shell_cannot_fork_python():
    imports = Imports(
        modules=[("numpy", True), ("mindspore", True), ("mindspore.nn", False)], program="x", forced=False
    )
    lines = list(dry_run.lines(run_of(plan(imports=imports))))
    assert "# --import_once: one process imports numpy mindspore, and the ranks are its forks" in lines
    asked = plan(imports=imports)
    asked.request.engine = "srun"
    lines = list(dry_run.lines(run_of(asked)))
    text = "# --import_once: on each host one process imports numpy mindspore, and the ranks there are its forks"
    assert text in lines


@pytest.mark.parametrize("scheduler", [[], ["schedule"]])
def test_an_engine_gets_agents_that_have_no_launcher(scheduler):
    run = run_of(plan(scheduler=scheduler), Engine)
    printed = list(dry_run.lines(run))
    told, started, *rest = printed[-4 if scheduler else -3 :]
    assert told.startswith(
        "export LAUNCH_ENGINE=starter LAUNCH_DEVICES= LAUNCH_TARGET=Ascend LAUNCH_SIZES=4x2 LAUNCH_BIND= LAUNCH_FOLDER="
    )
    assert told.endswith(r" LAUNCH_FOR_RANKS_A=b\ c") and "SECRET" not in told
    assert started == " ".join(["starter -n 2", *run.engine.agent_words(), r"python x\ y.py"])
    assert rest == (["kill $! # the scheduler", "wait"] if scheduler else ["wait"])
