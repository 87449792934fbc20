#!/usr/bin/env python3
"""What the console and the report cost for what ranks print, beside plain lines of as many bytes.

  one log    rank 0's log on a pipe, as ascend1p.sh shows it; a line of 100 MB beside plain lines of 100 MB
  all logs   --console all of two ranks that print at the same time

Every rank prints and then fails, so that the report shows the end of its log.  Times are those of the launcher and all
its processes, less those of a launch whose rank prints nothing.  Medians of several runs, taken in turns.

  make bench ONLY=output
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import figures
import launch

RUNS = 3
SIZE = 8_000_000
LONG = 100_000_000
RANK = """#!/usr/bin/env bash
[[ $PRINTED == silence ]] || cat "$PRINTED"
exit 3
"""
NOTE = (
    "A rank prints {size} MB and fails; the launcher prints its output to a pipe, and the report. Processor time and "
    "time of the launcher with all its processes, less those of a launch whose rank prints nothing. The ratio is that "
    "to plain lines. Medians of {runs} runs."
)


def tables():
    """Measures; yields a figures.Table for one log, a very long line, and all logs."""
    with tempfile.TemporaryDirectory() as folder:
        launch.prepare(folder)
        Path(folder, "rank").write_text(RANK, encoding="utf-8")
        files = written(folder, SIZE, kinds(SIZE))
        yield compared("Output of a rank", folder, files, "ascend1p.sh", "0", SIZE)
        yield compared("Output of two ranks at once, --console all", folder, files, "ascend2p.sh", "all", SIZE)
        files = written(folder, LONG, {"plain lines": plain(LONG), "one line": b"x" * LONG})
        yield compared("A line of 100 MB", folder, files, "ascend1p.sh", "0", LONG)


def plain(size):
    """Plain lines of a training."""
    line = "epoch: 1 step: %7d, loss is 0.123456, accuracy 0.9876, 12345.6 images a second\n"
    return "".join(line % number for number in range(size // len(line % 0) + 1)).encode()[:size]


def kinds(size):
    """{what a rank prints: bytes, at least `size` of them}"""
    drawings = "\r%3d%%|" + "█" * 10 + "| %7d/1000000 [00:12<00:34, 123.4it/s]"
    count = size // len((drawings % (0, 0)).encode()) + 1
    colours = plain(size).replace(b"loss", b"\x1b[31mloss\x1b[0m")
    return {
        "plain lines": plain(size),
        "a progress bar": "".join(drawings % (n % 100, n) for n in range(count)).encode(),
        "a bar of 100 states a line": "".join(
            drawings % (n % 100, n) + "\n" * (n % 100 == 99) for n in range(count)
        ).encode(),
        "one line": b"x" * size,
        "binary": random.Random(1).randbytes(size),
        "colours": colours,
        "characters cut in half": b"\xe4\xb8" * 39 + b"\n" + plain(size).replace(b"loss", b"\xe4\xb8"),
        "CR LF": plain(size).replace(b"\n", b"\r\n"),
        "no newline at the end": plain(size) + b"no end",
        "short lines": b"".join(b"%d\n" % number for number in range(1_200_000)),
    }


def written(folder, size, contents):
    """{kind: the path of a file with the first `size` bytes of its content}; one more kind prints nothing."""
    files = {"silence": "silence"}
    for number, (kind, content) in enumerate(contents.items()):
        files[kind] = os.path.join(folder, f"printed_{size}_{number}")
        Path(files[kind]).write_bytes(content[: size + 6] if kind == "no newline at the end" else content[:size])
    return files


def compared(title, folder, files, script, console, size):
    """A figures.Table of one launch for each of the files."""
    command = ["bash", os.path.join(launch.PROJECT, "scripts", script), "--no_check", "--hccn_conf", "hccn.conf"]
    command += ["--console", console, "--train_script", "trainer.py", "config.yaml"]
    used = {kind: [] for kind in files}
    for _ in range(RUNS):
        for kind, file in files.items():
            used[kind].append(measure(command, folder, file))
    medians = {kind: [statistics.median(values) for values in zip(*used[kind])] for kind in files}
    silence = medians.pop("silence")
    more = {kind: [value - least for value, least in zip(medians[kind], silence)] for kind in medians}
    rows = [
        [kind, f"{cpu:.2f} s", f"{cpu / more['plain lines'][0]:.2f}", f"{wall:.2f} s", f"{lines:,}"]
        for kind, (cpu, wall, lines) in more.items()
    ]
    rows.append(["(silence)", f"{silence[0]:.2f} s", "-", f"{silence[1]:.2f} s", f"{silence[2]:,}"])
    columns = ["", "processor time", "times plain lines", "time", "bytes of the report"]
    return figures.Table(title, columns, rows, NOTE.format(size=size // 1_000_000, runs=RUNS))


def measure(command, folder, printed):
    """Processor time and time of one launch in seconds, and the bytes that it wrote to stderr."""
    env = {**launch.environment(folder, "output", tempfile.mkdtemp(dir=folder)), "PRINTED": printed}
    said = os.path.join(folder, "stderr")
    began = time.monotonic()
    with open(said, "wb") as err:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=err)
        while process.stdout.read(1 << 20):
            pass
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 3:
        sys.exit(f"output.py: exit {os.waitstatus_to_exitcode(status)} of: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began, os.path.getsize(said)


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
