#!/usr/bin/env python3
"""How long until 8 ranks run: our launcher with all its checks, a bare shell loop, and mpirun.

Each launcher starts the same program, whose first instruction writes the time to a file.  The figure
is the time from the launcher's start to the last of the 8, the median of several runs, taken in
turns so that all of them meet the same machine.  Times of one run can be compared with each other
and with nothing else.

  make bench
"""

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RANKS = 8
RUNS = 11

# The first thing that a rank does: it starts no interpreter, so the launcher's own cost shows.
RANK = """#!/usr/bin/env bash
echo "$EPOCHREALTIME" >"$STAMP_FOLDER/${RANK_ID-$OMPI_COMM_WORLD_RANK}"
"""

LOOP = "for ((r = 0; r < 8; r++)); do RANK_ID=$r DEVICE_ID=$r {rank} & done; wait"


def main():
    """Measures and prints; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        commands = prepare(folder)
        times = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                times[name].append(last_start(command, folder))
    report(times)
    return 0


def prepare(folder):
    """The commands to compare: name -> argument list."""
    rank = os.path.join(folder, "rank")
    for name, text in (("rank", RANK), ("config.yaml", "system: {distribute: True}\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(rank, 0o755)
    # Stands in for Python: plans with the real one, and is the rank program when told to train.
    with open(os.path.join(folder, "python"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase $2 in *trainer.py) exec "{rank}" ;; esac\nexec "{sys.executable}" "$@"\n')
    os.chmod(os.path.join(folder, "python"), 0o755)
    open(os.path.join(folder, "trainer.py"), "w", encoding="utf-8").close()
    conf = os.path.join(PROJECT, "configs", "demo_hccn.conf")
    script = os.path.join(PROJECT, "scripts", "ascend8p.sh")
    options = ["--no_check", "--hccn_conf", conf, "--train_script", "trainer.py", "config.yaml"]
    commands = {
        "bare loop": ["bash", "-c", LOOP.format(rank=rank)],
        "ascend8p.sh": ["env", f"PYTHON={folder}/python", "bash", script, *options],
    }
    if shutil.which("mpirun"):
        commands["mpirun"] = ["mpirun", "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", rank]
    return commands


def last_start(command, folder):
    """Milliseconds from the start of `command` to the first instruction of its last rank."""
    stamps = tempfile.mkdtemp(dir=folder)
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "STAMP_FOLDER": stamps,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    began = time.time()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=60)
    written = []
    for name in os.listdir(stamps):
        with open(os.path.join(stamps, name), encoding="ascii") as file:
            written.append(float(file.read().replace(",", ".")))  # some locales write a comma
    if len(written) != RANKS:
        sys.exit(f"launch.py: {len(written)} of {RANKS} ranks ran under: {' '.join(command)}")
    return (max(written) - began) * 1e3


def report(times):
    """The medians, and each as a ratio to the others."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    cores = len(os.sched_getaffinity(0))
    print(f"{RANKS} ranks, {cores} cores, Python {platform.python_version()}, median of {RUNS} runs")
    print(f"{'':14}{'last rank runs after':>22}" + "".join(f"{'/ ' + name:>16}" for name in medians))
    for name, median in medians.items():
        ratios = "".join(f"{median / other:16.2f}" for other in medians.values())
        print(f"{name:14}{median:19.1f} ms{ratios}")
    if "mpirun" not in medians:
        print("mpirun is not installed: not compared")


if __name__ == "__main__":
    sys.exit(main())
