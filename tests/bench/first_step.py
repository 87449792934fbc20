#!/usr/bin/env python3
"""How long a training takes from its command to its first step: each rank imports, or --import_once; msrun and mpirun.

For 1, 2, 4 and 8 ranks, on CPU, in turns: seconds to the first step of the last rank, and in `init()`; processor time
and memory of all ranks; and how often they turn to files, as strace counts in a run of its own.

  make bench ONLY=first_step
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import figures
import opened

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRAINER = os.path.join(PROJECT, "tests", "bench", "first_step_trainer.py")
SIZES = tuple(map(int, os.environ.get("BENCH_RANKS", "1 2 4 8").split()))
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
_OF_PYTHON = f"/lib/python{sys.version_info[0]}"  # in the paths of its modules, and of packages
COLUMNS = ["ranks", "first step", "init()", "processor", "memory", "files opened", "in vain", "looked up", "read"]
INTERVALS = ("MS_RETRY_INTERVAL_LOWER=3", "MS_RETRY_INTERVAL_UPPER=5")  # MindSpore's own


def ways(ranks):
    """{name: command}."""
    script = os.path.join(PROJECT, "scripts")
    ours = ["--device_target", "CPU", "--console", "none", "--no_watch"]
    found = {
        "own imports": ["bash", f"{script}/launch.sh", "-n", str(ranks), *ours, TRAINER],
        "import once": ["bash", f"{script}/launch.sh", "-n", str(ranks), *ours, "--import_once", TRAINER],
    }
    if ranks > 1:
        found["import once, MindSpore's intervals"] = ["env", *INTERVALS, *found["import once"]]
        found["msrun"] = ["msrun", f"--worker_num={ranks}", f"--local_worker_num={ranks}", "--join=True", TRAINER]
        if shutil.which("mpirun"):
            found["mpirun"] = ["bash", f"{script}/run_mpirun.sh", "-n", str(ranks), *ours, TRAINER]
    return {name: [*words, str(ranks)] for name, words in found.items()}


def run(words, folder, before=()):
    """(seconds to the first step of the last rank, the most in init(), processor seconds, megabytes of all ranks)."""
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
    longest = max(float(row[2]) for row in steps)
    return first, longest, used.ru_utime + used.ru_stime, sum(shares) / 1024


def read(path):
    """The text of a file."""
    with open(path, encoding="ascii") as file:
        return file.read()


def calls(words, folder):
    """The opened.Calls of all processes; None if they cannot be counted."""
    out = os.path.join(folder, "calls")
    if opened.why_not():
        return None
    try:
        run(words, folder, opened.before(out, _OF_PYTHON))
    except RuntimeError:  # MindSpore may crash under strace
        return None
    return opened.read(out)


def measured(ranks, folder):
    """The rows of this number of ranks."""
    commands = ways(ranks)
    found = {name: [] for name in commands}
    for turn in range(RUNS):
        for name in list(commands) if turn % 2 else reversed(list(commands)):
            found[name].append(run(commands[name], folder))
    for name, runs in found.items():
        first, longest, processor, memory = map(statistics.median, zip(*runs))
        times = [f"{first:.1f} s", f"{longest:.1f} s" if ranks > 1 else "-", f"{processor:.1f} s", f"{memory:,.0f} MB"]
        yield [f"{ranks}: {name}", *times, *cells(calls(commands[name], folder))]


def cells(counted):
    """The cells of Calls in a row."""
    if counted is None:
        return ["-"] * 4
    numbers = (counted.opened, counted.missed, counted.looked)
    return [*(f"{number:,}" for number in numbers), f"{counted.bytes / 1e6:,.0f} MB"]


def tables():
    """Measures; yields a figures.Table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for ranks in SIZES for row in measured(ranks, folder)]
    note = (
        f"Medians of {RUNS} runs in turns, at a load of {os.getloadavg()[1]:.1f}. First step: from the command to the"
        " end of the step of the last rank, with MindSpore's scheduler. init(): of the rank that takes longest."
        " Processor: of the whole command. Memory: of the ranks, after that step; what they share is counted once."
        " Files: of Python and its packages, by the whole command, in one run under strace. In vain: there is no such"
        " file. Looked up: stat(2) and its like. Read: without libraries, which are mapped."
    )
    yield figures.Table("To the first step", COLUMNS, rows, note)


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
