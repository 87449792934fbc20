"""The scripts are presets of mslaunch: it reads their declarations as bash does, and makes the same plans."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_tools.common import typed
from tools.front import presets

ROOT = Path(__file__).resolve().parents[2]
# A Python of another name is asked whether it is one.  It writes what the launcher would get, each word with a NUL.
PRINTER = "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n"
SCRIPTS = sorted(path.name for path in (ROOT / "scripts").glob("*.sh"))
LAUNCHING = [name for name in SCRIPTS if any(words[0].isalpha() for words in presets.declared(name))]
CPU = ["--device_target", "CPU", "--dry_run"]
TRAINER = ["--train_script", "t.py", "--config", "c.yaml"]
# {case: (script, words)}: what a launch of each script is tried with
WORDS = {
    **{f"ascend{n}p": (f"ascend{n}p.sh", [*CPU, "t.py", "--lr", "0.1"]) for n in (1, 2, 4, 8)},
    "launch": ("launch.sh", ["-n", "2", *CPU, "t.py", "a b", "$HOME"]),
    "msrun_launcher": ("msrun_launcher.sh", [*CPU, "t.py --lr 0.1", "2"]),
    "run": ("run.sh", [*CPU, *TRAINER, "data", "2"]),
    "run_cluster of a hostfile": ("run_cluster.sh", [*CPU, *TRAINER, "--hostfile", "hosts", "data"]),
    "run_cluster of a table": ("run_cluster.sh", [*TRAINER, "--no_check", "--dry_run", "data", "table.json", "2", "1"]),
    "a hostfile behind the arguments": ("run_cluster.sh", [*CPU, "data", "table.json", "--hostfile", "hosts"]),
    "run_cpu": ("run_cpu.sh", ["--dry_run", *TRAINER[:2], "c.yaml"]),
    "run_dataset_slice": ("run_dataset_slice.sh", [*CPU, *TRAINER, "data", "2"]),
    "run_gpu": ("run_gpu.sh", [*CPU, "-n", "2", *TRAINER, "data"]),
    "run_mpirun": ("run_mpirun.sh", [*CPU, "-n", "2", *TRAINER[:2], "c.yaml", "--", "-o", "x=1"]),
    "run_mpirun_1": ("run_mpirun_1.sh", [*CPU, *TRAINER, "localhost:2"]),
    "run_mpirun_2": ("run_mpirun_2.sh", [*CPU, *TRAINER, "hosts"]),
    "run_msrun": ("run_msrun.sh", [*CPU, "--worker_num", "2", "t.py"]),
    "run_pipeline": ("run_pipeline.sh", ["--dry_run", *TRAINER, "data", "CPU"]),
    "run_pod": ("run_pod.sh", [*CPU, "t.py"]),
    "run_slurm": ("run_slurm.sh", [*CPU, "--ntasks_per_node", "2", "t.py"]),
    "a mistake": ("ascend2p.sh", [*CPU, "--no_such_option", "t.py"]),
    "a missing config": ("ascend2p.sh", [*CPU, "missing.yaml"]),
}
VARIABLES = {"POD_IP": "127.0.0.1", "MS_LOCAL_WORKER": "2", "MS_SCHED_PORT": "8123"}
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "localhost", "SLURM_NNODES": "1"}
# What differs from one start to the next, and the name by which each is typed.
ONE_START = re.compile(r"-\d{8}T\d{6}Z-\d+|LAUNCH_JOB=\S+")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a trainer, a config, a hostfile and a rank table; PATH has programs that start ranks."""
    for name in list(os.environ):
        if re.match("(RANK|DEVICE|MS_|SLURM|PYTHON|LAUNCH|OMPI)", name):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("t.py").write_text("print(1)\n")
    Path("c.yaml").write_text("system:\n  distribute: True\n")
    Path("hosts").write_text("localhost slots=2\n")
    device = '{"device_id": "0", "device_ip": "192.168.0.%d", "rank_id": "%d"}'
    servers = [
        f'{{"server_id": "{at}", "device": [{device % (n + 1, n)}]}}' for n, at in enumerate(("10.0.0.1", "127.0.0.1"))
    ]
    Path("table.json").write_text(
        f'{{"version": "1.0", "server_count": "2", "server_list": [{", ".join(servers)}], "status": "completed"}}\n'
    )
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, says in (
        ("srun", "slurm 23.02.7"),
        ("mpirun", "mpirun (Open MPI) 4.1.6"),
        ("msrun", "msrun"),
        ("scontrol", "localhost"),
    ):
        (programs / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.path.dirname(sys.executable), os.environ["PATH"]]))
    monkeypatch.setenv("LAUNCH_LOCKS", str(tmp_path / "locks"))
    return tmp_path


def start(*words, **variables):
    """(status, stdout, stderr) of a command."""
    environ = {**os.environ, "PYTHON": sys.executable, **VARIABLES, **variables}
    ended = subprocess.run(words, capture_output=True, text=True, env=environ, stdin=subprocess.DEVNULL, timeout=300)
    return ended.returncode, ended.stdout, ended.stderr


def same(text, *names):
    """The text without what differs from start to start, and with one name in the place of the typed ones."""
    text = ONE_START.sub("-START", text)
    for name in names:
        text = text.replace(name, "NAME")
    return text


def test_every_script_that_launches_has_a_case():
    assert {script for script, _ in WORDS.values()} == set(LAUNCHING)
    others = set(SCRIPTS) - set(LAUNCHING)
    assert {f"scripts/{name}" for name in others} <= set(typed.WORDS)


@pytest.mark.slow
@pytest.mark.parametrize(("script", "words"), WORDS.values(), ids=WORDS)
def test_mslaunch_reads_from_a_script_what_bash_passes_on(here, script, words):
    printer = here / "python3.9"
    printer.write_text(PRINTER)
    printer.chmod(0o755)
    status, got, error = start("bash", str(ROOT / "scripts" / script), *words, PYTHON=str(printer))
    assert (status, error) == (0, "")
    got = got.split("\0")[:-1]
    assert got[:3] == ["-E", "-s", str(ROOT / "tools" / "launch" / "main.py")]
    told = got[3:]
    assert [word.partition("=")[0] for word in told[:3]] == ["script", "caller", "ignored"]
    assert told[3:] == [*presets.chosen(script, words), "--", *words]


@pytest.mark.thorough
@pytest.mark.parametrize("case", WORDS)
def test_a_script_and_its_preset_make_the_same_plan(here, case):
    script, words = WORDS[case]
    name = script[:-3]
    preset = [name] if f"scripts/{script}" not in typed.WORDS else []
    variables = SLURM if name == "run_slurm" else {}
    module = [sys.executable, str(ROOT / "mindspore_launch" / "__main__.py")]
    by_script = start("bash", str(ROOT / "scripts" / script), *words, **variables)
    by_front = start(*module, *preset, *words, **variables)
    typed_script, typed_front = (
        f"bash {ROOT}/scripts/{script}",
        " ".join([sys.executable, "-m mindspore_launch", *preset]),
    )
    shown = " ".join(["mslaunch", *preset])
    told = [
        (status, *(same(text, *names) for text in texts))
        for (status, *texts), names in (
            (by_script, (f"/{name}-START", typed_script, f"{name}.sh")),
            (by_front, (f"/{preset[0] if preset else 'mslaunch'}-START", typed_front, shown)),
        )
    ]
    assert told[0] == told[1]
    if not case.startswith("a "):
        assert told[0][0] == 0, told[0]
        assert "this is what it would start" in told[0][1]
