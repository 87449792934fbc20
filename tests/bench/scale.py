#!/usr/bin/env python3
"""What the launcher costs by itself from 8 to 65,536 ranks: its curve, with a simulated mpirun and srun.

The simulated engine (tests/fixtures/many_agents) starts no rank: it says what the agents of all ranks would say, and
sleeps for a second in between.  So all time but that second is the launcher's, and the second in which one of the ranks
fails.  The memory is the most that the launcher and all its helpers had at one moment, measured every 50 ms, without
the simulated engine; pages that they share count once (PSS).

  make bench ONLY=scale
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

import figures
from launch import PROJECT

SIZES = (8, 64, 1024, 8192, 65536)
AGENTS = os.path.join(PROJECT, "tests", "fixtures", "many_agents")
SECONDS = 1.0
TIMEOUT = 600
NOTE = (
    "The launcher's own time: from the command until the engine has told that the last rank runs, and from the "
    "engine's last line until the command returns. A failed job: one rank in the middle exits with 3; the report is "
    "there when the command returns. 8 ranks a host. Simulated engine, so no ssh and no start of ranks is in it."
)


def tables():
    """Measures; yields one figures.Table per engine."""
    for engine in ("mpirun", "srun"):
        rows = []
        for ranks in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                good, failed = measure(engine, ranks, folder, ""), measure(engine, ranks, folder, str(ranks // 2))
            own = good.start + good.end
            row = [f"{ranks:,}", f"{good.start:.2f} s", f"{good.end:.2f} s", f"{own / ranks * 1e3:.2f} ms"]
            rows.append([*row, f"{failed.end:.2f} s", f"{max(good.memory, failed.memory) / 1024:.0f} MiB"])
        head = ["ranks", "until the last rank runs", "from the last end", "both, a rank", "report, a failure", "memory"]
        yield figures.Table(f"The launcher's own cost by the number of ranks, {engine}", head, rows, NOTE)


class Measured:
    """Seconds until the last rank ran, seconds from the engine's last line to the end, and memory in KiB."""

    def __init__(self, start, end, memory):
        self.start, self.end, self.memory = start, end, memory


def measure(engine, ranks, folder, failing):
    """One launch."""
    words = prepare(engine, ranks, folder)
    stamps = os.path.join(folder, "stamps")
    env = {**os.environ, "PATH": AGENTS + os.pathsep + os.environ["PATH"], "AGENTS_STAMPS": stamps}
    env.update(AGENTS_SECONDS=str(SECONDS), AGENTS_FAIL=failing, PYTHON=sys.executable, LAUNCH_LANG="en")
    env.update(PYTHONPATH=os.path.join(PROJECT, "tests", "fixtures", "stub_mindspore"), STUB_OUT=folder)
    env.update(slurm(ranks) if engine == "srun" else {})
    began = time.time()
    with open(os.path.join(folder, "said"), "w+") as said:
        launcher = subprocess.Popen(words, cwd=folder, env=env, stdout=said, stderr=said)
        memory = watch(launcher.pid)
        code = launcher.wait(TIMEOUT)
        ended = time.time()
        said.seek(0)
        if code != (3 if failing else 0):
            sys.exit(f"scale.py: {' '.join(words)} ended with {code}: {said.read()[-2000:]}")
    with open(stamps) as file:
        last_start, *_, last_end = map(float, file.read().split())
    return Measured(last_start - began, ended - last_end, memory())


def prepare(engine, ranks, folder):
    """The command, in a folder with a config and hosts."""
    with open(os.path.join(folder, "program.py"), "w"):
        pass
    each = min(ranks, 8)
    with open(os.path.join(folder, "hostfile"), "w") as file:
        for host in range(ranks // each):
            file.write(f"127.{1 + host // 62500}.{host // 250 % 250}.{host % 250 + 1} slots={each}\n")
    own = ["--no_check", "--device_target", "CPU"]
    if engine == "srun":
        return ["bash", os.path.join(PROJECT, "scripts", "run_slurm.sh"), *own, "program.py"]
    return ["bash", os.path.join(PROJECT, "scripts", "run_mpirun_2.sh"), *own, "hostfile", "program.py"]


def slurm(ranks):
    """What Slurm tells a job with so many ranks."""
    each = min(ranks, 8)
    nodes = {"SLURM_JOB_NODELIST": f"n[0-{ranks // each - 1}]", "SLURM_NTASKS_PER_NODE": str(each)}
    return {**nodes, "SLURM_JOB_ID": "77", "SLURMD_NODENAME": "n0"}


def watch(launcher):
    """Begins to measure; returns a function: the most memory so far, in KiB."""
    most = [0]

    def look():
        while os.path.exists(f"/proc/{launcher}/smaps_rollup"):
            most[0] = max(most[0], sum(map(memory_of, family(launcher))))
            time.sleep(0.05)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    return lambda: most[0]


def family(launcher):
    """The process and all below it, without the simulated engine."""
    found, new = [], [launcher]
    while new:
        pid = new.pop()
        try:
            with open(f"/proc/{pid}/cmdline") as command, open(f"/proc/{pid}/task/{pid}/children") as children:
                if AGENTS not in command.read():
                    found.append(pid)
                new += map(int, children.read().split())
        except OSError:  # it has ended
            continue
    return found


def memory_of(pid):
    """Its share of the memory, in KiB."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
