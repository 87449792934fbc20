#!/usr/bin/env python3
"""Measures what our scripts add to the engines beneath them: 8 ranks under mpirun and under srun, bare and ours.

Each starts the same program, whose first instruction writes the time to a file.  Two figures, medians
of several runs taken in turns: until the last of the 8 runs, and until the command returns.  Times of
one run can be compared with each other and with nothing else.

  make bench
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import figures
from launch import PROJECT, environment, prepare, stamp

RANKS = 8
RUNS = 11
SLURM = os.path.join(PROJECT, "tests", "fixtures", "slurm.sh")


def tables():
    """Measures; yields one figures.Table per engine."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        slurm = start_slurm(folder)
        try:
            for engine, bare, ours in comparisons(folder, slurm):
                yield compare(engine, bare, ours, folder)
        finally:
            subprocess.run(["bash", SLURM, "down", os.path.join(folder, "slurm")], check=False)


def start_slurm(folder):
    """Starts a Slurm of two nodes; if that is impossible, prints why and returns None."""
    slurm = os.path.join(folder, "slurm")
    up = subprocess.run(["bash", SLURM, "up", slurm], check=False, capture_output=True, text=True, timeout=300)
    if up.returncode == 0:
        return slurm
    print(f"srun: not compared: {up.stdout.strip()}")
    return None


def comparisons(folder, slurm):
    """(name, command of the bare engine, our command) of every engine that is installed."""
    trainer = ["--no_check", "--train_script", "trainer.py"]
    if shutil.which("mpirun"):
        bare = ["mpirun", "-n", str(RANKS), "-H", f"localhost:{RANKS}", "--bind-to", "none", f"{folder}/rank"]
        ours = ["bash", os.path.join(PROJECT, "scripts", "run_mpirun.sh"), *trainer, "-n", str(RANKS), "config.yaml"]
        yield "mpirun", bare, ours
    else:
        print("mpirun: not installed, not compared")
    if slurm:
        salloc = ["salloc", "--quiet", "-N", "2", f"--ntasks-per-node={RANKS // 2}"]
        bare = [*salloc, "srun", "--cpu-bind=none", f"{folder}/rank"]
        script = os.path.join(PROJECT, "scripts", "run_slurm.sh")
        yield "srun", bare, [*salloc, "bash", script, *trainer, "config.yaml"]


def compare(engine, bare, ours, folder):
    """A figures.Table of both, until the last rank runs and until the command returns."""
    times = {"bare": [], "ours": []}
    for _ in range(RUNS):
        times["bare"].append(run(bare, folder))
        times["ours"].append(run(ours, folder))
    rows = []
    for index, what in enumerate(("until the last rank runs", "until the command returns")):
        alone, with_us = (statistics.median(run[index] for run in times[name]) for name in ("bare", "ours"))
        more = f"+{with_us - alone:,.0f} ms"
        rows.append([what, f"{alone:,.0f} ms", f"{with_us:,.0f} ms", more, f"{with_us / alone:.2f}"])
    note = f"{RANKS} ranks, medians of {RUNS} runs."
    return figures.Table(f"What our script adds to {engine}", ["", "bare", "ours", "more", "ratio"], rows, note)


def run(command, folder):
    """(until the last rank's first instruction, until the end) of `command`, in ms."""
    stamps = tempfile.mkdtemp(dir=folder)
    more = {
        # MindSpore's scheduler, which Slurm's ranks get, takes seconds to import: here it is a stand-in.
        "PYTHONPATH": os.path.join(PROJECT, "tests", "fixtures", "stub_mindspore"),
        "STUB_OUT": folder,
        "SLURM_CONF": os.path.join(folder, "slurm", "slurm.conf"),
    }
    env = {**environment(folder, "start", stamps), **more}
    began = time.time()
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, timeout=300)
    ended = time.time()
    written = [stamp(stamps, name) for name in os.listdir(stamps)]
    if len(written) != RANKS:
        sys.exit(f"engines.py: {len(written)} of {RANKS} ranks ran under: {' '.join(command)}")
    return (max(written) - began) * 1e3, (ended - began) * 1e3


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
