"""Explains the logs of real failures, and counts how often the answer is right.

  FIELD_FAULTS=FOLDER python -m tests.field                   the answers are those of field_cases.yaml
  python -m tests.field FOLDER --answers FOLDER/answers.yaml  other cases, with their own answers
  python -m tests.field ... --row "cases with a rule"         a row of the table in docs/when_it_fails.md
  python -m tests.field ... --case NAME                       whole explanations of cases with NAME in their names

FOLDER has a folder for each case; its logs are there, or in its folder input/.  tests/field/judging.py says what a
row of answers has, and which answer is right.

The table "How often that is right" of docs/when_it_fails.md has rows made by --row: of the cases of field_cases.yaml,
and of trials with cases that nobody had written a rule for.  Put them into tools/pages/heads/when_it_fails.md and
when_it_fails_zh.md (same numbers, Chinese words), then make the two pages: see tools/pages/known_failures_page.py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.field import judging
from tools.logs import known_failures

if TYPE_CHECKING:
    from tests.field.judging import Judged

ANSWERS = Path(__file__).resolve().parents[1] / "diagnosis" / "field_cases.yaml"


def main() -> int:
    """0 if all answers are right, 1 if not, 2 if there are no cases."""
    wanted = _options()
    if not wanted.folder:
        print("field: name a folder of cases, or set FIELD_FAULTS", file=sys.stderr)
        return 2
    answers = yaml.safe_load(wanted.answers.read_text(encoding="utf-8"))
    names = [name for name in answers if not wanted.case or any(part in name for part in wanted.case)]
    missing = sorted(set(names) - set(judging.cases_below(wanted.folder)))
    if missing or not names:
        print(f"field: no such case in {wanted.folder}: {', '.join(missing or wanted.case)}", file=sys.stderr)
        return 2
    entries, _ = known_failures.load({})
    found = {name: judging.judged(wanted.folder, name, answers[name], entries) for name in names}
    if wanted.case:
        for name, one in found.items():
            print(f"{name}: {one}\n")
    elif wanted.row is None:
        for name, one in found.items():
            print(_line(name, one))
        print()
    print(_row(wanted.row, found) if wanted.row is not None else _summary(found))
    return 0 if all(one.outcome == judging.RIGHT for one in found.values()) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.field",
        description="Explains the logs of real failures, and counts how often the answer is right.",
    )
    parser.add_argument("folder", nargs="?", default=os.environ.get("FIELD_FAULTS"), help="default: $FIELD_FAULTS")
    parser.add_argument("--answers", type=Path, default=ANSWERS, metavar="FILE", help="default: field_cases.yaml")
    parser.add_argument("--case", action="append", metavar="NAME", help="show the cases with NAME in their names")
    parser.add_argument("--row", metavar="WORDS", help="print only a row of the table in docs/when_it_fails.md")
    return parser.parse_args()


def _line(name: str, one: Judged) -> str:
    root = f"{','.join(map(str, one.ranks)) or '-'} {one.certainty or ''}"
    return f"{name:<34} {one.outcome:<23} {root:<16} {one.code or '-'}"


def _counts(found: dict[str, Judged]) -> dict[str, int]:
    counted = Counter(one.outcome for one in found.values())
    return {outcome: counted[outcome] for outcome in (*judging.OUTCOMES, judging.OPEN)}


def _summary(found: dict[str, Judged]) -> str:
    counts = _counts(found)
    lines = [f"{outcome:<23} {number:>3}" for outcome, number in counts.items() if number or outcome != judging.OPEN]
    right = 100 * counts[judging.RIGHT] // max(1, len(found) - counts[judging.OPEN])
    return "\n".join([*lines, f"{'cases':<23} {len(found):>3}, {right} % of those with an answer are right"])


def _row(words: str, found: dict[str, Judged]) -> str:
    counts = _counts(found)
    cells = [words, len(found) - counts[judging.OPEN], *(counts[outcome] for outcome in judging.OUTCOMES)]
    return f"| {' | '.join(map(str, cells))} |"
