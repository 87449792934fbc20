#!/usr/bin/env python3
"""What it costs to look at a job while it runs: the live screen of tools/watch.py on a terminal of its own.

make bench ONLY=watch

A process here adds lines to the logs, ten times a second.  The screen runs for a short and for a long time; the
difference of its processor time, without its start, is what a second costs.
"""

import json
import os
import pty
import select
import sys
import tempfile
import time

import figures
import rank_tables

PROJECT = rank_tables.PROJECT
SIZES = ((64, 100), (1024, 10))  # ranks, and lines that each prints in a second
SHORT, LONG = 10.0, 40.0  # seconds
_HISTORY = 50  # tenths of a second that the logs have before anybody looks
_TIMES_A_SECOND = 10


def tables():
    """Measures; yields a figures.Table."""
    rows = []
    for ranks, lines in SIZES:
        (first, drawn), (second, redrawn) = (watched(ranks, lines, seconds) for seconds in (SHORT, LONG))
        share = (second - first) / (LONG - SHORT)
        frames = redrawn - drawn
        rows.append(
            [f"{ranks:,} ranks, {lines} lines a second each", f"{share:.2%}", frames, f"{first:.2f} s of {SHORT:.0f} s"]
        )
    note = (
        f"Processor time of the screen in {LONG - SHORT:.0f} s, as a share of one core. There is a frame every 2 s, or "
        "less often if that took more than 1 % of a core. The start of the program is in the last column only."
    )
    yield figures.Table("The live screen", ["", "of a core", "frames", "with its start"], rows, note)


def plan(folder, ranks):
    """The run's launch.json; its launcher is on another host, so the run seems to last."""
    document = {
        "script": "run_cluster.sh",
        "started": "2026-01-31T12:00:00Z",
        "host": "elsewhere",
        "ranks": [{"rank": rank, "device": rank % 8, "log": f"rank_{rank}.log"} for rank in range(ranks)],
    }
    with open(os.path.join(folder, "launch.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)


def watched(ranks, lines, seconds):
    """(seconds of processor time, frames) of a screen that is ended after so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        plan(folder, ranks)
        for step in range(1, _HISTORY):
            grow(folder, ranks, lines, step)
        return on_terminal(folder, ranks, lines, seconds)


def on_terminal(folder, ranks, lines, seconds):
    """The same, of a run that is there."""
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(TERM="xterm-256color")
        os.execv(sys.executable, [sys.executable, os.path.join(PROJECT, "tools", "watch.py"), folder])
    frames, step, end, due = 0, _HISTORY, time.monotonic() + seconds, time.monotonic()
    while time.monotonic() < end:
        due += 1 / _TIMES_A_SECOND
        step += 1
        grow(folder, ranks, lines, step)
        while (left := due - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                frames += os.read(terminal, 1 << 16).count(b"\x1b[H")
    os.write(terminal, b"q")
    _, _, used = drained(pid, terminal)
    return used.ru_utime + used.ru_stime, frames


def grow(folder, ranks, lines, step):
    """Each rank prints what it does in a tenth of a second."""
    text = text_of(step, lines // _TIMES_A_SECOND)
    for rank in range(ranks):
        with open(os.path.join(folder, f"rank_{rank}.log"), "a", encoding="utf-8") as file:
            file.write(text)


def drained(pid, terminal):
    """What os.wait4 says of the screen, whose last words nobody else reads."""
    while True:
        try:
            if not os.read(terminal, 1 << 16):
                break
        except OSError:  # its end
            break
    os.close(terminal)
    return os.wait4(pid, 0)


def text_of(step, lines):
    """So many lines of one rank."""
    found = []
    for number in range(lines // 2 or 1):
        head = f"epoch: 1 step: {step * 10 + number}"
        found.append(f"{head}, loss is {1 / step:.7f}\n")
        if lines > 1:
            found.append(f"{head}, step time is 45.1 ms, 3.2 ms of it for data, 1419.1 samples/s\n")
    return "".join(found)


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
