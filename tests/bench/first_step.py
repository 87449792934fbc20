#!/usr/bin/env python3
"""How long a training takes from its command to its first step: each rank imports, or --import_once; msrun and mpirun.

For 1, 2, 4 and 8 ranks, on CPU, in turns: seconds to the first step of the last rank, processor time and memory of all
ranks, and how many files they open, as strace counts them in a run of its own.

  make bench ONLY=first_step
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import figures

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRAINER = os.path.join(PROJECT, "tests", "bench", "first_step_trainer.py")
SIZES = tuple(map(int, os.environ.get("BENCH_RANKS", "1 2 4 8").split()))
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
WITHIN = 600  # seconds
COLUMNS = ["ranks", "first step", "processor", "memory", "files opened"]
_OPENS = re.compile(rb"\bopen(?:at)?\(")


def ways(ranks):
    """{name: command}."""
    script = os.path.join(PROJECT, "scripts")
    ours = ["--device_target", "CPU", "--console", "none", "--no_watch"]
    found = {
        "own imports": ["bash", f"{script}/launch.sh", "-n", str(ranks), *ours, TRAINER],
        "import once": ["bash", f"{script}/launch.sh", "-n", str(ranks), *ours, "--import_once", TRAINER],
    }
    if ranks > 1:
        found["msrun"] = ["msrun", f"--worker_num={ranks}", f"--local_worker_num={ranks}", "--join=True", TRAINER]
        if shutil.which("mpirun"):
            found["mpirun"] = ["bash", f"{script}/run_mpirun.sh", "-n", str(ranks), *ours, TRAINER]
    return {name: [*words, str(ranks)] for name, words in found.items()}


def run(words, folder, before=()):
    """(seconds to the first step of the last rank, processor seconds, megabytes of all ranks, losses)."""
    out = tempfile.mkdtemp(dir=folder)
    environment = {**os.environ, "BENCH_OUT": out, "PYTHON": sys.executable}
    begun = time.time()
    process = subprocess.Popen(
        [*before, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{words}: exit {process.returncode}: {said[-2000:].decode('utf-8', 'replace')}")
    found = {name: read(os.path.join(out, name)).split() for name in os.listdir(out)}
    steps = [row for name, row in found.items() if not name.endswith(".share")]
    shares = [int(row[0]) for name, row in found.items() if name.endswith(".share")]
    first = max(float(row[0]) for row in steps) - begun
    return first, used.ru_utime + used.ru_stime, sum(shares) / 1024, {row[1] for row in steps}


def read(path):
    """The text of a file."""
    with open(path, encoding="ascii") as file:
        return file.read()


def opens(words, folder):
    """How many files all processes open; "-" without strace, or if that fails."""
    if not shutil.which("strace"):
        return "-"
    log = os.path.join(folder, "strace.log")
    try:
        run(words, folder, ["strace", "-f", "-qq", "-e", "trace=open,openat", "-e", "signal=none", "-o", log])
    except RuntimeError:  # MindSpore may crash under it
        return "-"
    with open(log, "rb") as file:
        return f"{sum(bool(_OPENS.search(line)) for line in file):,}"


def measured(ranks, folder):
    """The rows of this number of ranks."""
    commands = ways(ranks)
    found = {name: [] for name in commands}
    for turn in range(RUNS):
        for name in list(commands) if turn % 2 else reversed(list(commands)):
            found[name].append(run(commands[name], folder))
    for name, runs in found.items():
        first, processor, memory = (statistics.median(one[index] for one in runs) for index in range(3))
        counted = opens(commands[name], folder)
        yield [f"{ranks}: {name}", f"{first:.1f} s", f"{processor:.1f} s", f"{memory:,.0f} MB", counted]


def tables():
    """Measures; yields a figures.Table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for ranks in SIZES for row in measured(ranks, folder)]
    note = (
        f"Medians of {RUNS} runs in turns. First step: from the command to the end of the step of the last rank, with"
        " MindSpore's scheduler. Processor and files: of the whole command. Memory: of the ranks, after that step; what"
        " they share is counted once."
    )
    yield figures.Table("To the first step", COLUMNS, rows, note)


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
