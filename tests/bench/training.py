#!/usr/bin/env python3
"""How long a step of data-parallel LeNet-5 takes with 1, 2 and 4 ranks, and what of it is communication.

Beside it the same is measured directly on MindSpore: with its Model.train, which tools/train.py calls as well,
and with a loop by hand.  All take turns in one process (tests/bench/training_turns.py says why and how);
the ratios are medians of those of single turns.  Ranks share this machine's cores, so the step gets
slower with their number.

  make bench
"""

import os
import statistics
import subprocess
import sys
import tempfile

import figures

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CONFIG = os.path.join(PROJECT, "configs", "mnist", "lenet5_digits.yaml")
TRAINER = os.path.join(PROJECT, "tests", "bench", "training_turns.py")
TURNS = 40
RUNS = int(os.environ.get("BENCH_RUNS", "2"))


def tables():
    """Measures; yields one figures.Table."""
    rows = [row(ranks, [turn for _ in range(RUNS) for turn in turns_of_a_job(ranks)]) for ranks in (1, 2, 4)]
    columns = ["ranks", "tools/train.py", "Model.train", "ratio", "a loop by hand", "ratio", "communication"]
    note = (
        f"Milliseconds of a step, medians of {RUNS} jobs of {TURNS} turns. In a turn each way trains an epoch in the "
        "same process. The ratios are medians of those of the turns, give or take the standard error. Model.train is "
        "MindSpore's own loop, which tools/train.py calls. Communication is the share of a step that the loop by hand "
        "saves without the exchange of gradients. Each rank is bound to one core."
    )
    yield figures.Table("A step of data-parallel LeNet-5 on CPU", columns, rows, note)


def row(ranks, turns):
    """One line of the table, from the turns: dicts of milliseconds."""
    ours, model, loop = (f"{statistics.median(turn[way] for turn in turns):.2f}" for way in ("ours", "Model", "loop"))
    share = f"{1 - ratio(turns, 'alone', 'loop')[0]:.0%}" if ranks > 1 else "-"
    beside = ["{:.3f} ± {:.3f}".format(*ratio(turns, "ours", way)) for way in ("Model", "loop")]
    return [ranks, ours, model, beside[0], loop, beside[1], share]


def ratio(turns, one, other):
    """The median of the turns' ratios, and its standard error for normally distributed ratios."""
    ratios = [turn[one] / turn[other] for turn in turns]
    return statistics.median(ratios), 1.253 * statistics.stdev(ratios) / len(ratios) ** 0.5


def turns_of_a_job(ranks):
    """The turns of one job of that many ranks, each {way: milliseconds of a step}."""
    with tempfile.TemporaryDirectory() as folder:
        how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 600, "check": False}
        done = subprocess.run(command(ranks), cwd=folder, env=environment(ranks), **how)
    if done.returncode:
        sys.exit(f"training.py: {ranks} ranks failed:\n{done.stdout}{done.stderr}")
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("turn: ")]
    assert len(lines) == TURNS + 1, done.stdout
    turns = [dict(zip(words[::2], map(float, words[1::2]))) for words in lines]
    return turns[1:]  # the first one compiles


def command(ranks):
    """What starts the job: the launcher for several ranks."""
    if ranks == 1:
        return [sys.executable, TRAINER]
    launcher = os.path.join(PROJECT, "scripts", f"ascend{ranks}p.sh")
    return ["bash", launcher, "--device_target", "CPU", "--train_script", TRAINER, CONFIG]


def environment(ranks):
    """The environment of a job: as many threads per rank as the launcher gives it."""
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    more = {"OMP_NUM_THREADS": threads, "GLOG_v": 3, "PYTHON": sys.executable, "BENCH_TURNS": TURNS + 1}
    return {**os.environ, **{name: str(value) for name, value in more.items()}}


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
