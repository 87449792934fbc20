#!/usr/bin/env python3
"""How long a step of a training with two ranks takes with --bind_core and without.

Both are real trainings on this machine's cores, which take turns. A figure is the median of the steps that rank 0
prints, without those of the first epoch, in which MindSpore compiles.

  make bench
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

import figures

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CONFIG = os.path.join(PROJECT, "configs", "mnist", "lenet5_digits.yaml")
RUNS = 7
WAYS = {"--bind_core": ["--bind_core"], "not bound": []}
NOTE = (
    "Milliseconds of a step of LeNet-5 on two ranks, as the trainer prints them: medians of {} trainings in turns. "
    "A core is a processor of this machine, which has {}. Each rank has as many threads as cores."
)


def tables():
    """Measures; yields one figures.Table."""
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        print("binding: needs 2 processors, not measured")
        return
    times = {name: [] for name in WAYS}
    for _ in range(RUNS):
        for name, options in WAYS.items():
            times[name].append(step_time(options))
    yield figures.compared("Two ranks with cores of their own", times, "--bind_core", NOTE.format(RUNS, cores))


def step_time(options):
    """The milliseconds of a step in one training with the options."""
    command = ["bash", os.path.join(PROJECT, "scripts", "ascend2p.sh"), "--device_target", "CPU", *options, CONFIG]
    environment = {**os.environ, "PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        environment["LAUNCH_LOCKS"] = os.path.join(folder, "locks")  # a job of somebody else must not narrow ours
        if os.path.isdir(os.path.join(PROJECT, "data")):
            os.symlink(os.path.join(PROJECT, "data"), os.path.join(folder, "data"))
        how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 600, "check": False}
        done = subprocess.run(command, cwd=folder, env=environment, **how)
        if done.returncode:
            sys.exit(f"binding.py: {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        with open(os.path.join(folder, "logs", "latest", "rank_0.log"), encoding="utf-8") as file:
            found = re.findall(r"^epoch: (\d+) step: \d+, step time is ([\d.]+) ms", file.read(), re.MULTILINE)
    return statistics.median(float(milliseconds) for epoch, milliseconds in found if int(epoch) > 1)


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
