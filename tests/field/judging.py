"""What a right answer about the logs of a failure is: the one home of that for tests and for `python -m tests.field`.

A row of answers says of one case:

  roots        the lists of ranks of which one must be named; []: none is named; [null]: a process whose rank is unknown
  certainty    how sure the root may be: sure, likely, guess; null: no root is named
  codes        the known failures of which one must be the first cause; null: none is named; TODO: nobody knows yet
  vague_codes  those that are true, but too general
  cause_words  instead of codes, where the entry need not exist yet: one of these texts must be in the first lines
  vague_words  texts of an answer that is true, but too general
  quoted       true: the log's own words are the answer, so that quoting them is enough
  says, never  texts that the explanation must have, or must not have
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_tools.common.language import in_english
from tools.diagnosis import answer, job_logs, words
from tools.diagnosis.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.waits import Target
    from tools.logs.known_failures import KnownFailure

RIGHT, VAGUE, UNKNOWN = "right", "vague", "unknown"
WRONG_CAUSE, WRONG_ROOT, WRONG_SURE, OPEN = "wrong cause", "wrong root", "wrong root called sure", "no answer yet"
OUTCOMES = (RIGHT, VAGUE, UNKNOWN, WRONG_CAUSE, WRONG_ROOT, WRONG_SURE)  # from the best to the worst
FIRST_LINES = 6  # of an explanation: whoever asks in a hurry reads no more


class Judged(NamedTuple):
    """How good the answer about one case is."""

    outcome: str  # one of the above
    faults: list[str]  # what is not as it should be
    code: str | None  # of the first cause
    ranks: list[int | None]  # of the root
    certainty: str | None
    text: str  # the whole explanation, in English

    def __str__(self) -> str:
        return "\n".join([self.outcome, *self.faults, "", self.text])


def cases_below(folder: str) -> list[str]:
    """The names of the cases of a folder, those of its kinds/ among them: each is a folder of logs."""
    found = []
    for above in ("", "kinds"):
        place = os.path.join(folder, above)
        if os.path.isdir(place):
            with os.scandir(place) as rows:
                found += [os.path.join(above, row.name) for row in rows if row.is_dir() and row.name != "kinds"]
    return sorted(found)


def judged(folder: str, name: str, answer: dict[str, Any], entries: list[KnownFailure]) -> Judged:
    """Explains the logs of the case `name` and compares that with its row of answers.  Raises OSError: no such case."""
    found, said = _explained(os.path.join(folder, name), entries)
    ranks = [one.rank for one in found.verdict.roots] if found.verdict else []
    certainty = found.verdict.certainty if found.verdict else None
    root = _root(found, ranks, certainty, answer)
    cause = _cause(found, said, name, answer)
    if cause == UNKNOWN and root == RIGHT and [] not in answer["roots"]:
        cause = VAGUE  # who of several failed is half of the answer
    spoken = _spoken(said, answer)
    parts = [cause, root, spoken]
    outcome = OPEN if cause == OPEN else max(parts, key=OUTCOMES.index)
    faults = [f"{part}: {why}" for part, why in zip(parts, _whys(ranks, certainty, found, answer)) if part != RIGHT]
    code = found.faults[0].entry.code if found.faults else None
    return Judged(outcome, faults, code, ranks, certainty, "\n".join(said))


def _explained(place: str, entries: list[KnownFailure]) -> tuple[Explained, list[str]]:
    """What the diagnosis finds and says there, typed in the folder of the logs, as a person does."""
    here = os.getcwd()
    os.chdir(place)
    try:
        with in_english():
            found = job_logs.of_paths(["input" if os.path.isdir("input") else os.curdir], entries)
            return found, words.lines_of(answer.of_logs(found))
    finally:
        os.chdir(here)


def _cause(found: Explained, said: list[str], name: str, answer: dict[str, Any]) -> str:
    first = found.faults[0].entry if found.faults else None
    if "cause_words" in answer:
        if any(_told(word, found, said, name, answer) for word in answer["cause_words"]):
            return RIGHT
        general = [*answer["cause_words"], *answer.get("vague_words", ())]  # the right words, but too far below
        own = f"{first.cause} {first.remedy}".lower() if first else ""
        vague = any(word.lower() in own for word in general)
    elif "TODO" in answer["codes"]:
        return OPEN
    elif (first.code if first else None) in answer["codes"]:
        return RIGHT
    else:
        vague = bool(first and first.code in answer.get("vague_codes", ()))
    if first:
        return VAGUE if vague or first.vague else WRONG_CAUSE
    waits = found.verdict is not None and found.verdict.kind != "error"  # who waited for whom is known at least
    return VAGUE if waits else UNKNOWN


def _told(word: str, found: Explained, said: list[str], name: str, answer: dict[str, Any]) -> bool:
    """Whether the first lines have the word, and do not only repeat a log, or a path, that has it."""
    text, word = "\n".join(said[:FIRST_LINES]).lower().replace(name.lower(), ""), word.lower()
    if word not in text or not (found.faults or found.verdict or answer.get("quoted")):
        return False
    repeated = [fault.seen.text for fault in found.faults]
    repeated += [one.exception.text for one in found.reading.findings if one.exception]
    repeated += [found.verdict.text] if found.verdict else []
    if answer.get("quoted") or not any(word in line.lower() for line in repeated):
        return True
    own = [f"{fault.entry.cause} {fault.entry.remedy}".lower() for fault in found.faults[:1]]
    return any(word in text for text in own)


def _root(found: Explained, ranks: list[int | None], certainty: str | None, answer: dict[str, Any]) -> str:
    if sorted(ranks, key=str) in [sorted(roots, key=str) for roots in answer["roots"]]:
        return RIGHT if certainty in answer["certainty"] else VAGUE
    if not (found.verdict and any(map(_named, found.verdict.roots))):
        return VAGUE  # whom nothing names nobody looks at
    return WRONG_SURE if certainty == "sure" else WRONG_ROOT


def _named(one: Process | Target) -> bool:
    return bool({one.rank, one.device, one.address, one.pid if isinstance(one, Process) else None} - {None})


def _spoken(said: list[str], answer: dict[str, Any]) -> str:
    text = "\n".join(said)
    if any(word in text for word in answer.get("never", ())):
        return WRONG_CAUSE
    return RIGHT if all(word in text for word in answer.get("says", ())) else VAGUE


def _whys(ranks: list[int | None], certainty: str | None, found: Explained, answer: dict[str, Any]) -> Iterable[str]:
    code = found.faults[0].entry.code if found.faults else None
    yield f"the first cause is {code}, not {_one_of(answer.get('codes') or answer.get('cause_words'))}"
    yield f"the root is {ranks} ({certainty}), not {_one_of(answer['roots'])} ({_one_of(answer['certainty'])})"
    yield f"it must say {answer.get('says', [])}, and never {answer.get('never', [])}"


def _one_of(values: Any) -> str:
    return " or ".join(map(str, values))
