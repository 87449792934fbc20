"""Makes each fault of preflight_faults.bats many times, and counts how often it was found and named alone.

python -m tests.field.preflight 20     so many rounds; the exit code is 1 if a fault was not named alone each time
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

FAULTS = Path(__file__).resolve().parents[1] / "preflight" / "preflight_faults.bats"
_LINE = re.compile(r"(not )?ok \d+ faults: (.*?)(?: in \d+m?s(?:ec)?)?( # skip.*)?$")


def main(words: list[str]) -> int:
    """0 if each fault was found in each round, 1 if not, 2 for a wrong command line."""
    if len(words) != 1 or not re.fullmatch(r"[1-9][0-9]{0,3}", words[0]):
        print("usage: python -m tests.field.preflight ROUNDS", file=sys.stderr)
        return 2
    rounds = int(words[0])
    good: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for number in range(1, rounds + 1):
        began = time.monotonic()
        text = _played()
        for found in filter(None, map(_LINE.fullmatch, text.splitlines())):
            (bad if found[1] else skipped if found[3] else good)[found[2]] += 1
        if "\nnot ok " in text:
            print(text, file=sys.stderr)
        print(f"round {number} of {rounds}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return _told(rounds, good, bad, skipped)


def _played() -> str:
    """What bats says of one round."""
    env = {"PREFLIGHT_HOSTS": "16", **os.environ}
    return subprocess.run(["bats", "--tap", str(FAULTS)], env=env, capture_output=True, text=True, check=False).stdout


def _told(rounds: int, good: Counter[str], bad: Counter[str], skipped: Counter[str]) -> int:
    """Prints the numbers; the exit code.  A fault that nobody has made counts as missed."""
    for name in sorted({*good, *bad, *skipped}, key=lambda name: good[name]):
        note = f", skipped {skipped[name]} times" if skipped[name] else ""
        print(f"{good[name]:4} of {rounds}  {name}{note}")
    missed = sum(bad.values())
    made = sum(good.values()) + missed
    print(f"{made} times in {rounds} rounds, {missed} of them not as expected, {sum(skipped.values())} skipped")
    return 1 if missed or not good or any(good[name] + skipped[name] < rounds for name in good) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
