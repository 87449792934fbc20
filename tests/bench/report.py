#!/usr/bin/env python3
"""How long the page of a run takes, and how large it is; the logs are made here, two lines for each step.

make bench ONLY=report
"""

import json
import os
import random
import sys
import tempfile

import figures
import rank_tables

PROJECT = rank_tables.PROJECT
SIZES = ((8, 10_000), (64, 2_000), (1024, 1_000))  # ranks, and logged steps of each
_IN_EPOCH = 1000


def tables():
    """Measures; yields a figures.Table."""
    rows = []
    for ranks, steps in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            total = logs(folder, ranks, steps)
            page = os.path.join(folder, "page.html")
            command = [sys.executable, os.path.join(PROJECT, "tools", "report.py"), folder, "--output", page]
            runs = rank_tables.in_turns({"page": command})["page"]
            size = os.path.getsize(page)
        rows.append(
            [
                f"{ranks:,} ranks, {steps:,} steps",
                f"{total / 1e6:,.0f} MB",
                f"{rank_tables.seconds_of(runs):.1f} s",
                f"{size / 1e6:.2f} MB",
                f"{max(each[1] for each in runs):,.0f} MB",
            ]
        )
    note = f"Whole commands, medians of {rank_tables.RUNS} runs; the logs are in the page cache. Two lines a step."
    yield figures.Table("The page of a run", ["", "logs", "report.py", "page", "memory"], rows, note)


def logs(folder, ranks, steps):
    """Writes the run; returns how many bytes its logs are."""
    numbers = random.Random(1)
    total = 0
    for rank in range(ranks):
        with open(os.path.join(folder, f"rank_{rank}.log"), "w", encoding="utf-8") as file:
            for number in range(steps):
                head = f"epoch: {number // _IN_EPOCH + 1} step: {number % _IN_EPOCH + 1}"
                time = 45 + 3 * numbers.random()
                total += file.write(f"{head}, loss is {2 - number / steps + numbers.random() / 10:.7f}\n")
                total += file.write(
                    f"{head}, step time is {time:.1f} ms, 3.2 ms of it for data, {64000 / time:.1f} samples/s\n"
                )
    document = {
        "script": "run_cluster.sh",
        "started": "2026-01-31T12:00:00Z",
        "ranks": [{"rank": rank, "device": rank % 8, "log": f"rank_{rank}.log"} for rank in range(ranks)],
        "outcome": {"ended": "2026-01-31T12:10:00Z", "exit": 0, "first_failure": None, "members": {}},
    }
    with open(os.path.join(folder, "launch.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)
    return total


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
