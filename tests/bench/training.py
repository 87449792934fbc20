#!/usr/bin/env python3
"""How long a step of data-parallel LeNet-5 takes with 1, 2 and 4 ranks, and what of it is communication.

Beside it the same written directly on MindSpore (tests/bench/direct_loop.py): with its Model.train, which
tools/train.py calls as well; with a loop by hand; and that loop without the exchange of gradients: what
it is faster by is communication.  The figure of a run is the mean step
time of its fastest epoch, which other programs disturbed least; of several runs, taken in turns, the
median.  Ranks share this machine's cores, so the step gets slower with their number.

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
DIRECT = os.path.join(PROJECT, "tests", "bench", "direct_loop.py")
DATA = os.path.join(PROJECT, "data", "digits", "train")
EPOCHS = 32
RUNS = int(os.environ.get("BENCH_RUNS", "3"))
# name -> BENCH_LOOP of direct_loop.py
KINDS = {"tools/train.py": "", "Model.train": "model", "loop by hand": "loop", "without exchange": "no_reduce"}


def tables():
    """Measures; yields one figures.Table."""
    rows = []
    for ranks in (1, 2, 4):
        times = {kind: [] for kind in KINDS}
        for _ in range(RUNS):
            for kind in KINDS:
                times[kind].append(step_time(kind, ranks))
        ours, model, loop, alone = (statistics.median(times[kind]) for kind in KINDS)
        share = f"{1 - alone / loop:.0%}" if ranks > 1 else "-"
        cells = [f"{ours:.2f} ms", f"{model:.2f} ms", f"{ours / model:.3f}", f"{loop:.2f} ms", f"{ours / loop:.3f}"]
        rows.append([ranks, *cells, share])
    columns = ["ranks", "tools/train.py", "Model.train", "ratio", "a loop by hand", "ratio", "communication"]
    note = (
        f"The mean step of the fastest of {EPOCHS} epochs, medians of {RUNS} runs. Model.train is MindSpore's own "
        "loop, which tools/train.py calls; communication is what the loop by hand is faster by without the exchange of "
        "gradients. The ranks share this machine's cores."
    )
    yield figures.Table("A step of data-parallel LeNet-5 on CPU", columns, rows, note)


def step_time(kind, ranks):
    """Milliseconds of a step in one run of that kind on that many ranks."""
    ours = kind == "tools/train.py"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command(ours, ranks),
            cwd=folder,
            env=environment(kind, ranks),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    if done.returncode:
        sys.exit(f"training.py: {kind} with {ranks} ranks failed:\n{done.stdout}{done.stderr}")
    # A line an epoch: tools/train.py's log interval is longer than that.
    means = [float(value) for value in re.findall(r"step time is ([0-9.]+) ms", done.stdout)]
    assert len(means) == EPOCHS, done.stdout
    return min(means)


def command(ours, ranks):
    """What starts the job: the launcher for several ranks, the trainer itself for one."""
    words = [f"scheduler.num_epochs={EPOCHS}", "system.log_interval=10000", f"train.dataset.dataset_root={DATA}"]
    words.append(f"eval.dataset.dataset_root={os.path.join(os.path.dirname(DATA), 'test')}")
    if ranks == 1:
        own = [os.path.join(PROJECT, "tools", "train.py"), "--config", CONFIG, "-o", "system.distribute=False"]
        return [sys.executable, *(own + words if ours else [DIRECT])]
    launcher = ["bash", os.path.join(PROJECT, "scripts", f"ascend{ranks}p.sh"), "--device_target", "CPU"]
    return [*launcher, *([CONFIG, "--", "-o", *words] if ours else ["--train_script", DIRECT, CONFIG])]


def environment(kind, ranks):
    """The environment of a job: as many threads a rank as the launcher would give it."""
    threads = max(1, len(os.sched_getaffinity(0)) // ranks)
    more = {"OMP_NUM_THREADS": threads, "GLOG_v": 3, "PYTHON": sys.executable, "BENCH_DATA": DATA}
    more["BENCH_EPOCHS"] = EPOCHS
    more["BENCH_LOOP"] = KINDS[kind]
    return {**os.environ, **{name: str(value) for name, value in more.items()}}


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
