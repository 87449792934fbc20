#!/usr/bin/env python3
"""What our launcher costs beside a bare shell loop, mpirun, msrun and torchrun (where installed).

  start   from the launcher's start to the first instruction of the last rank, 8 and 64 ranks
  death   from a rank's death to the launcher's end; the other ranks obey SIGTERM
  lines   8 ranks print 200,000 lines each: until the launcher has ended
  idle    8 ranks sleep for a minute: processor time and memory of all processes but the ranks

Every launcher starts the same program; it starts no interpreter, so that the launcher's own cost
shows (msrun and torchrun start Python programs only, so theirs is a Python that executes it).
Medians of several runs, taken in turns so that all meet the same machine.

  make bench
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import figures

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
RUNS = 7
SLOW_RUNS = 5  # for launchers that take seconds
IDLE_SECONDS = 60
LINES = 200_000
TIMEOUT = 60

RANK = """#!/usr/bin/env bash
rank=${RANK_ID-${OMPI_COMM_WORLD_RANK-${SLURM_PROCID-${RANK-${MS_NODE_ID-0}}}}}
case $BENCH in
  start) echo "$EPOCHREALTIME" >"$STAMP_FOLDER/$rank" ;;
  death)
    if [[ $rank == 3 ]]; then
      while [[ $(ls "$STAMP_FOLDER" | wc -l) -lt 7 ]]; do :; done
      echo "$EPOCHREALTIME" >"$STAMP_FOLDER/died"
      exit 1
    fi
    echo >"$STAMP_FOLDER/$rank"
    exec sleep 600
    ;;
  lines) exec seq LINES ;;
  idle) echo $$ >"$STAMP_FOLDER/$rank" && exec sleep 600 ;;
esac
"""
DEATH = (
    "From the death of one of 8 ranks to the launcher's end; the other ranks obey SIGTERM. Two are missing. A bare "
    "loop never ends. msrun kills the other ranks within a second and then waits for MindSpore's scheduler. These "
    "ranks are not MindSpore programs and never joined it."
)
LOOP = 'for ((r = 0; r < {ranks}; r++)); do RANK_ID=$r {rank} >"log_$r" 2>&1 & done; wait'
PYTHON_RANK = "import os\nos.execv({rank!r}, [{rank!r}])\n"


def tables():
    """Measures; yields a figures.Table for each of the four."""
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (8, 64):
            times = in_turns(commands(folder, ranks, "start"), folder, "start", ranks)
            yield compared(
                f"Start of {ranks} ranks", times, "From the command to the first instruction of the last rank."
            )
        times = in_turns(commands(folder, 8, "death"), folder, "death", 8)
        yield compared("Death of a rank", times, DEATH)
        times = in_turns(commands(folder, 8, "lines"), folder, "lines", 8)
        yield compared(f"8 ranks print {LINES:,} lines each", times, "From the command to its end.")
        yield idle(folder)


def compared(title, times, note):
    """A figures.Table of {command: [milliseconds]}."""
    return figures.compared(title, times, next(name for name in times if name.endswith(".sh")), note)


def commands(folder, ranks, what):
    """The commands to compare: name -> argument list; msrun and torchrun only where seconds do not hide everything."""
    rank = prepare(folder)
    script = "scripts/ascend8p.sh" if ranks == 8 else "tests/fixtures/many_ranks.sh"
    options = ["--no_check", "--hccn_conf", "hccn.conf", "--train_script", "trainer.py", "config.yaml"]
    found = {
        "bare shell loop": ["bash", "-c", LOOP.format(rank=rank, ranks=ranks)],
        os.path.basename(script): ["bash", os.path.join(PROJECT, script), *options],
    }
    if ranks == 8:
        front = os.path.join(PROJECT, "mindspore_launch", "__main__.py")
        found["mslaunch ascend8p"] = [sys.executable, front, "ascend8p", *options]
    if shutil.which("mpirun"):
        found["mpirun"] = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", rank]
    if ranks == 8 and what in ("start", "death"):
        found.update(slow_commands(folder))
    if what == "death":
        del found["bare shell loop"]
        found.pop("msrun", None)
    return found


def slow_commands(folder):
    """Launchers that import a framework before they start."""
    found = {}
    program = os.path.join(folder, "rank.py")
    if shutil.which("msrun"):
        words = ["--worker_num=8", "--local_worker_num=8", "--master_port=18118", "--join=True", "--log_dir=msrun"]
        found["msrun"] = ["msrun", *words, program]
    if shutil.which("torchrun"):
        found["torchrun"] = ["torchrun", "--standalone", "--nproc_per_node=8", program]
    return found


def prepare(folder):
    """Writes the files of the benchmark; returns the path of the rank program."""
    rank = os.path.join(folder, "rank")
    files = {
        "rank": RANK.replace("LINES", str(LINES)),
        "rank.py": PYTHON_RANK.format(rank=rank),
        "config.yaml": "system: {distribute: True}\n",
        "hccn.conf": "".join(f"address_{n}=10.1.{n % 8}.{n + 1}\n" for n in range(64)),
        # Replaces Python: plans with the real one, and is the rank program when told to train.
        "python": f'#!/bin/sh\ncase $2 in *trainer.py) exec "{rank}" ;; esac\nexec "{sys.executable}" "$@"\n',
        "trainer.py": "",
    }
    for name, text in files.items():
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    return rank


def in_turns(commands_, folder, what, ranks):
    """{name: [milliseconds]} of several runs of each command, taken in turns."""
    times = {name: [] for name in commands_}
    for run in range(RUNS):
        for name, command in commands_.items():
            if run < SLOW_RUNS or name not in ("msrun", "torchrun"):
                times[name].append(measure(command, folder, what, ranks))
    return times


def environment(folder, what, stamps):
    """The environment of the launchers and the rank program."""
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "BENCH": what,
        "PYTHON": os.path.join(folder, "python"),
        "LAUNCH_LOCKS": os.path.join(folder, "locks"),
        "STAMP_FOLDER": stamps,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def measure(command, folder, what, ranks):
    """Milliseconds of one run."""
    stamps = tempfile.mkdtemp(dir=folder)
    began = time.time()
    # into files: a pipe would have to be read while the clock runs
    with open(os.path.join(folder, "stdout"), "wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder, what, stamps), stdout=out, stderr=out, start_new_session=True
        )
    watch = threading.Timer(TIMEOUT, os.killpg, (process.pid, signal.SIGKILL))
    watch.start()
    process.wait()  # no timeout here: it would look every 50 ms only
    done = time.time()
    watch.cancel()
    if done - began >= TIMEOUT:  # a launcher may hang, and that is a result as well
        return float("inf")
    if (process.returncode == 0) == (what == "death"):
        sys.exit(f"launch.py: exit {process.returncode} of: {' '.join(command)}")
    if what == "lines":
        return (done - began) * 1e3
    if what == "death":
        return (done - stamp(stamps, "died")) * 1e3
    if len(os.listdir(stamps)) != ranks:
        sys.exit(f"launch.py: {len(os.listdir(stamps))} of {ranks} ranks ran under: {' '.join(command)}")
    return (max(stamp(stamps, name) for name in os.listdir(stamps)) - began) * 1e3


def stamp(folder, name):
    """The time that a rank wrote; some locales write a comma."""
    with open(os.path.join(folder, name), encoding="ascii") as file:
        return float(file.read().replace(",", "."))


# ---- a job that waits ------------------------------------------------------------------------------


def idle(folder):
    """What the launcher and its helpers use while eight ranks sleep."""
    stamps = tempfile.mkdtemp(dir=folder)
    command = commands(folder, 8, "idle")["ascend8p.sh"]
    none, env = subprocess.DEVNULL, environment(folder, "idle", stamps)
    launcher = subprocess.Popen(command, cwd=folder, env=env, stdout=none, stderr=none)
    while len(os.listdir(stamps)) < 8:
        time.sleep(0.05)
    time.sleep(1)
    ranks = {int(stamp(stamps, name)) for name in os.listdir(stamps)}
    helpers = [pid for pid in family(launcher.pid) if pid not in ranks]
    before = sum(map(ticks, helpers))
    time.sleep(IDLE_SECONDS)
    used = (sum(map(ticks, helpers)) - before) / os.sysconf("SC_CLK_TCK")
    memory = sum(map(proportional_kib, helpers)) / 1024
    launcher.send_signal(signal.SIGTERM)
    launcher.wait()
    note = "Eight ranks sleep. The table has what the launcher and its helpers use, without the ranks."
    columns = ["", "processor time", "memory (shared pages in part)", "processes"]
    row = ["ascend8p.sh", f"{used:.2f} s", f"{memory:.1f} MiB", len(helpers)]
    return figures.Table(f"A job that waits for {IDLE_SECONDS} s", columns, [row], note)


def family(pid):
    """A process and all its descendants."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for parent in found:
        found += [child for child, its in parents.items() if its == parent]
    return found


def ticks(pid):
    """Processor time of one process."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def proportional_kib(pid):
    """Memory of one process; what it shares with others counts in part."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
