#!/usr/bin/env python3
"""Runs all benchmarks and writes what they measured to docs/benchmarks.md, with a chart beside it.

make bench              all of them: some 25 minutes on a machine with nothing else to do
make bench ONLY=launch  one of them, on the screen only
"""

import datetime
import importlib
import os
import platform
import re
import subprocess
import sys
import textwrap

os.environ["PYTHON"] = sys.executable
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]  # msrun is there

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PAGE = os.path.join(PROJECT, "docs", "benchmarks.md")
CHART = os.path.join(PROJECT, "docs", "benchmarks.svg")
BENCHMARKS = (
    "launch",
    "real_job",
    "first_step",
    "output",
    "engines",
    "scale",
    "rank_tables",
    "logs",
    "report",
    "watch",
    "check_network",
    "preflight",
    "input_pipeline",
    "training",
    "binding",
)
VERSIONS = {
    "bash": ["bash", "-c", "echo $BASH_VERSION"],
    "Open MPI": ["mpirun", "--version"],
    "Slurm": ["slurmd", "-V"],
    "MindSpore": [sys.executable, "-c", "from importlib.metadata import version as v; print(v('mindspore'))"],
    "torchrun": [sys.executable, "-c", "from importlib.metadata import version as v; print(v('torch'))"],
}
INTRODUCTION = """# Benchmarks

{measured}

<!-- not run: takes 25 minutes -->
```bash
make bench
```

Compared with: {versions}. What is missing was not installed."""
MEASURED = (
    "What `make bench` printed on {date}: {machine}. Everything is measured on the CPU, with simulated NPU tools; "
    "nothing here says how fast an NPU or a GPU trains. The lines of one table were measured in turns, so that all met "
    "the same machine. Compare them with each other, by their ratios, and not with figures from another machine. "
    "To repeat the measurement, use a machine with nothing else to do:"
)


def main(only=""):
    """Measures and prints; writes the page unless ONLY names one benchmark; returns the exit code."""
    load = os.getloadavg()[0]
    if load > 1:
        print(f"page.py: other programs use this machine (load {load:.1f}); the figures will show it", file=sys.stderr)
    tables = []
    for name in [only] if only else BENCHMARKS:
        for table in importlib.import_module(name).tables():
            print(table.text(), end="\n\n", flush=True)
            tables.append(table)
    if not only:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write("\n\n".join([introduction(), chart(tables), *(table.markdown() for table in tables)]) + "\n")
        print(f"written: {os.path.relpath(PAGE)}, {os.path.relpath(CHART)}")
    return 0


def introduction():
    """The head of the page: when, on what, compared with which versions."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = (
        f"{cores} cores, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
    )
    versions = {name: version(command) for name, command in VERSIONS.items()}
    shown = ", ".join(f"{name} {found}" for name, found in versions.items() if found)
    measured = MEASURED.format(date=datetime.date.today().isoformat(), machine=machine)
    return INTRODUCTION.format(measured=textwrap.fill(measured, 120), versions=shown)


def version(command):
    """The version in the first line that a command prints; empty where it is not installed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except OSError:
        return ""
    found = re.search(r"\d+(\.\d+)+", done.stdout) if done.returncode == 0 else None
    return found[0] if found else ""


def chart(tables):
    """Draws the tables that have bars, one panel per table; returns the line of the page that shows it."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "benchmarks", "font.size": 9})
    from matplotlib import pyplot

    drawn = [table for table in tables if table.bars]
    heights = [len(table.bars[1]) + 1 for table in drawn]
    figure, panels = pyplot.subplots(
        len(drawn), 1, figsize=(7, 0.3 * sum(heights) + 0.5), height_ratios=heights, layout="constrained", squeeze=False
    )
    for panel, table in zip(panels[:, 0], drawn):
        unit, values = table.bars
        names = list(values)[::-1]
        colours = ["#1668b8" if name.endswith(".sh") else "#9aa5b1" for name in names]
        bars = panel.barh(names, [values[name] for name in names], color=colours)
        panel.bar_label(bars, [f"{values[name]:,.0f} {unit}" for name in names], padding=3)
        panel.set_title(table.title, loc="left", fontweight="bold", fontsize=9)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
        panel.set_xticks([])
        panel.set_xlim(0, max(values.values()) * 1.15)
    figure.savefig(CHART, metadata={"Date": None, "Creator": None}, facecolor="white")
    return "![The medians as bars](benchmarks.svg)"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
