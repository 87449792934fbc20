#!/usr/bin/env python3
"""How long it takes to find the root of a failure in the logs of many ranks, beside reading them with `cat`.

With the package hyperscan, if it is installed, and without it.

The logs are made here: of each rank a plog, and what it printed.  All ranks but one wait for that one.

  make bench
"""

import os
import subprocess
import sys
import tempfile

import figures
import rank_tables

PROJECT = rank_tables.PROJECT
SIZES = ((8, 1), (64, 8), (1024, 1))  # ranks, and MB of each
INFO = (
    "[INFO] HCCL({pid},python3):2025-01-24-11:{minute:02}:00.614.147 [a.cc:221][75]Resources rank[{rank}] buffer[{n}]\n"
)
TRAIN = "epoch: {n} step: {n}, loss is 2.3{n}, per step time: 123.4 ms, learning rate 0.001\n"
MEMBER = "[INFO] HCCL({pid},python3):2025-01-24-11:00:09.614.147 [a.cc:221]SetupAgent rankNum[{ranks}], rank[{rank}], "
WITHOUT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tools.logs import matcher; matcher.installed = lambda: False; "
    "from tools.diagnosis import main; sys.exit(main.main(sys.argv[2:]))"
)
WAIT = "[ERROR] HCCL({pid},python3):2025-01-24-11:59:59.908.572 [a.cc:1018]|  10.0.0.9(7)  |  10.1.1.1({rank})  "


def tables():
    """Measures; yields a figures.Table."""
    rows = []
    for ranks, size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            total = logs(folder, ranks, size * 1_000_000)
            read = ["/bin/sh", "-c", 'find "$0" -type f -exec cat {} + >/dev/null', folder]
            diagnose = [sys.executable, os.path.join(PROJECT, "tools", "diagnose.py"), folder]
            alone = [sys.executable, "-c", WITHOUT, PROJECT, folder]
            subprocess.run(read, check=True)  # from now on the files are in memory
            runs = rank_tables.in_turns({"read": read, "diagnose": diagnose, "alone": alone})
        seconds = {name: rank_tables.seconds_of(each) for name, each in runs.items()}
        memory = max(each[1] for each in runs["diagnose"])
        rows.append(
            [
                f"{ranks:,} ranks, {total / 1e6:,.0f} MB",
                f"{seconds['diagnose']:.2f} s",
                f"{seconds['read']:.2f} s",
                f"{memory:.0f} MB",
                f"{seconds['diagnose'] / seconds['read']:.1f}",
                f"{total / 1e6 / seconds['diagnose']:.0f} MB/s",
                f"{total / 1e6 / seconds['alone']:.0f} MB/s",
                f"{seconds['alone'] / seconds['diagnose']:.1f}",
            ]
        )
    note = (
        f"Whole commands, medians of {rank_tables.RUNS} runs in turns; the logs are in the page cache. All columns "
        "but the last two are with hyperscan; the last one is the time without it beside the time with it."
    )
    columns = ["", "diagnose.py", "cat", "our memory", "times cat", "with hyperscan", "without", "ratio"]
    yield figures.Table("Finding the root of a failure in the logs of all ranks", columns, rows, note)


def logs(folder, ranks, size):
    """Writes the logs; returns how many bytes they are."""
    total = 0
    for rank in range(ranks):
        below = os.path.join(folder, f"node{rank // 8}", f"rank_{rank}")
        os.makedirs(os.path.join(below, "debug", "plog"))
        values = {"pid": 1000 + rank, "rank": rank, "ranks": ranks, "minute": 30}
        plog = MEMBER.format(**values) + "phydevId[1]\n"
        block = "".join(INFO.format(n=n, **values) for n in range(2000))
        plog += block * (size * 7 // 10 // len(block) + 1)
        plog += WAIT.format(**values) + "|  client  | time out |\n" if rank != 7 else ""
        block = "".join(TRAIN.format(n=n) for n in range(2000))
        printed = block * (size * 3 // 10 // len(block) + 1)
        for name, text in (
            (f"debug/plog/plog-{1000 + rank}_20250124110000000.log", plog),
            (f"rank_{rank}.log", printed),
        ):
            with open(os.path.join(below, name), "w", encoding="utf-8") as file:
                total += file.write(text)
    return total


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
