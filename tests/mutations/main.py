"""Plays all mutations, two at a time, each in a copy of the project, and says which of them no test has noticed."""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutations import declarations, variables
from tests.mutations.mutation import Mutation, NoMatch

ROOT = Path(__file__).resolve().parents[2]
BATS = "tests/scripts/rank_environment.bats"
CAUGHT, MISSED, SKIPPED = "caught", "NOT CAUGHT", "not tested here"


def main() -> int:
    """0 if all were caught, 1 if not, 2 if nothing can be said."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations",
        description="Changes scripts and variables of ranks; rank_environment.bats must notice each change.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="those whose names have this text; default: all")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    wanted = parser.parse_args()
    chosen = [one for one in every(ROOT) if not wanted.names or any(name in one.name for name in wanted.names)]
    if wanted.list or not chosen:
        print("\n".join(one.name for one in chosen) or "no mutation has such a name")
        return 0 if chosen else 2
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        try:
            return play(chosen, Path(folder))
        except NoMatch as error:
            print(f"mutations: {error}; see tests/mutations/variables.py", file=sys.stderr)
            return 2


def every(root: Path) -> list[Mutation]:
    """All mutations."""
    of_declarations = [one for path in declarations.scripts(root) for one in declarations.of_script(root, path.name)]
    return [*of_declarations, *variables.of_scripts(root), *variables.general()]


def play(chosen: list[Mutation], folder: Path) -> int:
    """Plays them in copies of the project below `folder`; returns the exit code.  Raises NoMatch."""
    for one in chosen:
        one.changed(ROOT)
    copies: queue.Queue[Path] = queue.Queue()
    for number in range(2):
        copies.put(copy(folder / str(number)))
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        before = {tests: pool.submit(tested, copies, None, tests) for tests in {one.tests for one in chosen}}
        controls = {one.name: pool.submit(tested, copies, one, one.tests) for one in variables.controls()}
        bad = [f"bats {BATS} --filter {tests!r}" for tests, future in before.items() if future.result() == CAUGHT]
        bad += [name for name, future in controls.items() if future.result() == CAUGHT]
        if bad:
            print(f"mutations: tests fail that nothing should make fail: {'; '.join(bad)}", file=sys.stderr)
            return 2
        found = [(one, pool.submit(tested, copies, one, one.tests)) for one in chosen]
        for one, future in found:
            print(f"{future.result():12} {one.name}", flush=True)
    verdicts = Counter(future.result() for _, future in found)
    print(
        f"mutations: {len(found)} in {time.monotonic() - began:.0f} s: "
        + ", ".join(f"{n} {v}" for v, n in verdicts.items())
    )
    for one, future in found:
        if future.result() == MISSED:
            print(f"mutations: no test has noticed: {one.name}")
    return 1 if verdicts[MISSED] else 0


def copy(folder: Path) -> Path:
    """A copy of the project's files in the folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def write(path: Path, text: str) -> None:
    """Writes a file, and removes what Python compiled of the one before: that may be as long, and as old."""
    path.write_text(text, encoding="utf-8")
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def tested(copies: queue.Queue[Path], mutation: Mutation | None, tests: str) -> str:
    """The verdict of the tests on one mutation."""
    folder = copies.get()
    try:
        if not mutation:
            return verdict(folder, tests)
        path = folder / mutation.file
        right = path.read_text(encoding="utf-8")
        write(path, mutation.changed(folder))
        try:
            return verdict(folder, tests)
        finally:
            write(path, right)
    finally:
        copies.put(folder)


def verdict(folder: Path, tests: str) -> str:
    """What the tests say, until the first that fails."""
    command = ["bats", "--tap", "--abort", *(["--filter", tests] if tests else []), BATS]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    env = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode and not re.search("^not ok", done.stdout, re.MULTILINE):
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    if done.returncode:
        return CAUGHT
    return MISSED if re.search(r"^ok \d+ (?!.*# skip)", done.stdout, re.MULTILINE) else SKIPPED
