#!/usr/bin/env python3
"""One real MindSpore job of two ranks on CPU under our scripts, msrun and mpirun: a whole run, and the loss of a rank.

The job is a net in the form of MindSpore's tutorials, whose file no launcher changes.  For the second figure its epochs
have no end, and rank 1 is killed after a step.  mpirun starts no scheduler, without which MindSpore's ranks on CPU do
not find each other: a shell script, which its users write themselves, makes one of its first process.

  make bench
"""

import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import figures

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRAINER = os.path.join(PROJECT, "tests", "fixtures", "trainers", "tutorial_net.py")
RUNS = 3
TIMEOUT = 300
EPOCHS = "range(15)"

# Before the tutorial's own lines: the first line that a rank prints after a step says which process it is.
KNOWN_RANK = """import builtins, os

def print(*words):
    builtins.print(*words, flush=True)
    path = os.path.join(os.environ["BENCH_STAMPS"], str(rank))
    if not os.path.exists(path):
        with open(path + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(path + ".new", path)

"""
MPIRUN_RANK = """#!/bin/sh
export MS_WORKER_NUM=2 MS_SCHED_HOST=127.0.0.1 MS_ROLE=MS_WORKER MS_NODE_ID=$((OMPI_COMM_WORLD_RANK - 1))
if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then
  export MS_ROLE=MS_SCHED
  exec "$PYTHON" -c "from mindspore.communication import init; init()"
fi
exec "$PYTHON" "$@"
"""
NOTE = (
    "The same unchanged program, a net in the form of MindSpore's tutorials, with two ranks on the CPU: medians of {} "
    "runs in turns. First a whole run, then the time from a SIGKILL of rank 1 to the end of the command, each with its "
    "exit code. Under mpirun, a script of the user's must start MindSpore's scheduler. The others start it themselves."
)


def tables():
    """Measures; yields one figures.Table."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        ways = commands(folder)
        whole = {name: [] for name in ways}
        killed = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, command in ways.items():
                whole[name].append(run(command, folder, "net.py"))
                killed[name].append(run(command, folder, "endless.py"))
    ours = statistics.median(seconds for seconds, _ in killed["launch.sh"])
    columns = ["", "whole run", "exit code", "SIGKILL to the end", "times launch.sh", "exit code"]
    rows = [
        [
            name,
            shown(whole[name]),
            codes(whole[name]),
            shown(killed[name]),
            f"{statistics.median(seconds for seconds, _ in killed[name]) / ours:.1f}",
            codes(killed[name]),
        ]
        for name in ways
    ]
    yield figures.Table("A real job under four launchers", columns, rows, NOTE.format(RUNS))


def prepare(folder):
    """Writes the programs."""
    source = Path(TRAINER).read_text(encoding="utf-8")
    if EPOCHS not in source:
        sys.exit(f"real_job.py: {TRAINER} has no {EPOCHS}, which this benchmark replaces")
    Path(folder, "net.py").write_text(source, encoding="utf-8")
    Path(folder, "endless.py").write_text(KNOWN_RANK + source.replace(EPOCHS, "range(10**9)"), encoding="utf-8")
    Path(folder, "rank.sh").write_text(MPIRUN_RANK, encoding="utf-8")


def commands(folder):
    """The launchers that are installed: name -> command, which lacks the program."""
    scripts = os.path.join(PROJECT, "scripts")
    found = {"launch.sh": ["bash", f"{scripts}/launch.sh", "--device_target", "CPU", "-n", "2"]}
    if shutil.which("msrun"):
        found["msrun"] = ["msrun", "--worker_num=2", "--local_worker_num=2", "--join=True", "--log_dir=msrun"]
    if shutil.which("mpirun"):
        found["run_mpirun.sh"] = ["bash", f"{scripts}/run_mpirun.sh", "--device_target", "CPU", "-n", "2"]
        found["mpirun"] = ["mpirun", "-n", "3", "--oversubscribe", "--bind-to", "none", "sh", f"{folder}/rank.sh"]
    return found


def run(command, folder, program):
    """(seconds, exit code) of the command with the program; of an endless one, the seconds since a rank was killed."""
    with tempfile.TemporaryDirectory(dir=folder) as stamps, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        environment = {
            **os.environ,
            "PYTHON": sys.executable,
            "BENCH_STAMPS": stamps,
            "MS_SCHED_PORT": port,  # msrun has an option for it
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }
        if command[0] == "msrun":
            command = [*command, f"--master_port={port}"]
        elif command[0] == "bash":
            del environment["MS_SCHED_PORT"]
        began = time.monotonic()
        with open(os.path.join(folder, "output"), "wb") as out:
            how = {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            process = subprocess.Popen([*command, program], start_new_session=True, **how)
        try:
            if program == "endless.py":
                began = kill_rank(stamps, process, command)
            code = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return float("inf"), process.wait()
        seconds = time.monotonic() - began
    if code and program == "net.py":
        sys.exit(f"real_job.py: exit {code} of: {' '.join(command)} {program}\n{Path(folder, 'output').read_text()}")
    return seconds, code


def kill_rank(stamps, process, command):
    """Kills rank 1 when both ranks have trained; returns when."""
    deadline = time.monotonic() + TIMEOUT
    while not {"0", "1"} <= set(os.listdir(stamps)):
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"real_job.py: the ranks did not train under: {' '.join(command)}")
        time.sleep(0.01)
    os.kill(int(Path(stamps, "1").read_text(encoding="ascii")), signal.SIGKILL)
    return time.monotonic()


def shown(runs):
    """The median of the seconds."""
    hung = sum(seconds == float("inf") for seconds, _ in runs)
    return f"hung in {hung} of {len(runs)}" if hung else f"{statistics.median(seconds for seconds, _ in runs):.2f} s"


def codes(runs):
    """The exit codes that there were."""
    return ", ".join(map(str, sorted({code for _, code in runs})))


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
