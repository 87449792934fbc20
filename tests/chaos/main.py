"""All rounds, several at once, and the summary."""

from __future__ import annotations

import argparse
import compileall
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos import rounds, world
from tests.chaos.rounds import Result
from tests.chaos.world import World


def main() -> int:
    """0 if no round has failed, else 1."""
    wanted = _arguments()
    world.default_signals()
    disk = _own_mounts()
    for name in ("tools", "hccl_tools"):  # as the first launch would; see World.environment
        compileall.compile_dir(wanted.project / name, quiet=2)
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir="/tmp"))
    folder.chmod(0o755)
    session = Session(wanted, folder, disk)
    print(f"chaos: seed {wanted.seed}, {wanted.bash}, {wanted.seconds} s, {wanted.at_once} rounds at once", flush=True)
    failed = session.run()
    if not failed:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


SHOWN = 30  # failed rounds in the summary


class Session:
    """Rounds until the time is over."""

    def __init__(self, wanted: argparse.Namespace, folder: Path, disk: bool) -> None:
        self.wanted, self.folder, self.disk = wanted, folder, disk
        self.lacks: Counter[str] = Counter()
        self.failed: list[Result] = []
        self.played = 0
        self.next = wanted.round
        self.lock = threading.Lock()
        self.end = time.monotonic() + wanted.seconds

    def run(self) -> list[Result]:
        """The rounds that have failed."""
        began = time.monotonic()
        with ThreadPoolExecutor(self.wanted.at_once) as pool:
            for future in [pool.submit(self._work) for _ in range(self.wanted.at_once)]:
                future.result()
        for text, count in sorted(self.lacks.items()):
            print(f"chaos: not made here, {count} times: {text}")
        minutes = (time.monotonic() - began) / 60
        print(f"chaos: {self.played} rounds, {self.played / minutes:.0f} a minute, {len(self.failed)} failed")
        for result in sorted(self.failed, key=lambda result: result.number)[:SHOWN]:
            print(f"chaos: failed: {self.repeat(result)}  # {'; '.join(result.problems)[:200]}")
        return self.failed

    def repeat(self, result: Result) -> str:
        """The command that plays just this round again."""
        more = "" if self.wanted.bash == "bash" else f" --bash {self.wanted.bash}"
        more += " --import_once" if self.wanted.import_once else ""
        return f"python -m tests.chaos --seed {self.wanted.seed} --round {result.number}{more}"

    def _work(self) -> None:
        while (number := self._take()) is not None:
            place = World(self.folder / f"round_{number}", self.wanted.bash, self.wanted.project)
            drawn = rounds.draw(self.wanted.seed, number, self.wanted.import_once)
            if drawn.setting.kind in self.wanted.without.split(","):
                drawn.setting.lacks = f"{drawn.setting.kind}: left out by --without"
            result = rounds.play(drawn, number, place, self.disk)
            with self.lock:
                self._record(result)

    def _take(self) -> int | None:
        with self.lock:
            first = self.next == self.wanted.round
            if not first and (self.wanted.once or time.monotonic() > self.end):
                return None
            number: int = self.next
            self.next += 1
            return number

    def _record(self, result: Result) -> None:
        self.played += 1
        self.lacks.update(result.lacks)
        if result.problems:
            self.failed.append(result)
            print(f"\n---- round {result.number} failed; repeat it with: {self.repeat(result)}")
        if result.problems or self.wanted.once:
            print("\n".join([*[f"problem: {text}" for text in result.problems], *result.notes]), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Launches under random faults.")
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a random one")
    parser.add_argument("--round", type=int, help="play only this round of the seed, and print all of it")
    parser.add_argument(
        "--at_once", type=int, default=2 * (os.cpu_count() or 1), help="rounds at once (default: %(default)s)"
    )
    parser.add_argument("--bash", default="bash", help="the bash that runs the scripts (default: of PATH)")
    parser.add_argument("--without", default="", help="kinds of settings to leave out, such as variables,function")
    parser.add_argument("--import_once", action="store_true", help="in all launches that can have it; else in some")
    parser.add_argument("--project", type=Path, default=world.ROOT, help="the project whose scripts are tested")
    wanted = parser.parse_args()
    wanted.once = wanted.round is not None
    wanted.round = wanted.round or 0
    return wanted


def _own_mounts() -> bool:
    """Starts this program again where its mounts are its own; whether it is there now."""
    if "CHAOS_MOUNTS" in os.environ:
        return os.environ["CHAOS_MOUNTS"] == "yes"
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    able = os.getuid() == 0 and shutil.which("unshare") and not subprocess.run(probe, capture_output=True).returncode
    os.environ["CHAOS_MOUNTS"] = "yes" if able else "no"
    if able:
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-m", "tests.chaos", *sys.argv[1:]])
    return False
