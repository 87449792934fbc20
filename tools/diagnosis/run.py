"""Reads the folder of a failed run: launch.json, the logs of members that failed by themselves, who asked it to end."""

from __future__ import annotations

import os

from hccl_tools.common import documents
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import named, one_line
from tools.launch import record
from tools.logs import log_tail, pytest_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.logs.findings import PythonException

_MOST = 1 << 53  # larger numbers are none of a step, and of no rank
# The launcher ends the other ranks with SIGTERM and, after the grace time, SIGKILL: not failures of their own.
STOPPED_BY_US = (128 + 15, 128 + 9)
_MOST_LOGS = 8  # if 1,000 ranks fail together, the first few are enough


class Member(Record):
    """A member of the job that failed: a rank, MindSpore's scheduler or an engine."""

    name: str
    status: int | None
    path: str  # of its log
    log: log_tail.RankLog
    trouble: str | None = None  # why the log states nothing
    exception: PythonException | None = None
    refusal: list[str] = []  # what the trainer said when it ended without an exception, by its name
    host: str | None = None  # where the launch has several
    device: int | None = None

    @property
    def is_rank(self) -> bool:
        """Whether it is a rank; its name is then the rank's number."""
        return is_rank(self.name)


def is_rank(name: str) -> bool:
    """Whether the member of that name is a rank."""
    return whole_number(name) is not None


def not_a_run(folder: str, what: str) -> Refusal:
    """Why `folder` is not the folder of a run."""
    text = tr("{path}: {what}; name the folder of a run, such as logs/latest", path=one_line(folder), what=what)
    return Refusal(USAGE, text)


def read_launch(folder: str) -> dict[str, Any]:
    """launch.json of a run that has ended.  Raises Refusal."""
    path = one_line(record.path(folder))
    if not os.path.lexists(record.path(folder)):
        raise misused("{path}: no such file; name the folder of a run, such as logs/latest", path=path)
    launch = record.read(folder)
    if not isinstance(launch.get("outcome"), dict):
        raise misused("{path}: has no outcome; the run goes on, or its launcher was killed", path=path)
    return launch


def read_members(launch: dict[str, Any], folder: str) -> list[Member]:
    """The Members that failed by themselves, in the order of their failures; empty if none did."""
    outcome = launch["outcome"]
    if outcome.get("first_failure") is None:
        return []
    first = str(outcome["first_failure"])
    ended = documents.part(outcome, "members")
    codes = ((name, documents.number(entry, "status")) for name, entry in ended.items())
    status = {name: code for name, code in codes if code is not None}
    named = set(documents.texts(outcome, "also_failed"))
    others = [name for name in status if name in named]
    if not outcome.get("stopped_by"):  # with --keep_going a limit may end ranks after a failure, by other signals, too
        others += [name for name, code in status.items() if code and code not in STOPPED_BY_US]
    others = [name for name in dict.fromkeys(others) if name != first]
    folder, trainer = os.path.join(folder, logs_of(outcome)), _trainer(launch)
    left = {name for name in status if ended[name].get("left_failed") is not None}
    places = places_of(launch)
    found = [
        _member(name, status.get(name), folder, trainer, left=name in left)
        for name in [first, *others[: _MOST_LOGS - 1]]
    ]
    return [one.replace(**places.get(one.name, {})) for one in found]


def places_of(launch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """{a rank's name: its host, where the launch has several, and its device}."""
    return {
        str(row["rank"]): {"host": documents.text(row, "host"), "device": documents.number(row, "device")}
        for row in documents.objects(launch, "ranks")
        if documents.number(row, "rank") is not None
    }


def logs_of(outcome: dict[str, Any] | None) -> str:
    """The folder of the last attempt's logs, inside the run's: launch.json is untrusted, and cannot lead elsewhere."""
    logs = str((outcome or {}).get("logs") or ".")
    return "." if os.path.isabs(logs) or os.pardir in logs.split(os.sep) else logs


def table_of(launch: dict[str, Any]) -> str | None:
    """The path of the rank table."""
    named = documents.text(launch.get("rank_table"), "file")
    return named or documents.text(launch.get("exports"), "RANK_TABLE_FILE")


def _trainer(launch: dict[str, Any]) -> str | None:
    """The name of the trainer's file."""
    files = (os.path.basename(word) for word in documents.texts(launch, "trainer") if word.endswith(".py"))
    return next(files, None)


def _member(name: str, status: int | None, folder: str, trainer: str | None, *, left: bool) -> Member:
    """left: a process failed that the rank had left."""
    path = os.path.normpath(os.path.join(folder, f"rank_{name}.log" if is_rank(name) else f"{name}.log"))
    try:
        if os.sep in name:
            raise ValueError(tr("it is not the log of a member"))
        log = log_tail.read(path)
    except (OSError, ValueError) as error:  # ValueError: the name cannot be a file name
        trouble = tr("cannot be read: {reason}", reason=strerror(error))
        return Member(name=name, status=status, path=path, log=log_tail.RankLog([], whole=False), trouble=trouble)
    empty = None if any(log.lines) else tr("is empty: it ended before it wrote anything")
    if empty and left:
        empty = tr(
            "is empty: the process that it left behind wrote nothing, or wrote into another file; see where the "
            "script sends its output"
        )
    exception = log_tail.last_exception(log.lines)
    refusal = [] if exception else _refusal(log.lines, trainer)
    return Member(name=name, status=status, path=path, log=log, trouble=empty, exception=exception, refusal=refusal)


def _refusal(lines: list[str], trainer: str | None) -> list[str]:
    """What the trainer or pytest said under its own name."""
    return (log_tail.last_refusal(lines, trainer) if trainer else []) or pytest_report.summary(lines)


# ---- The sentence about a job that was asked to save and to end, from its launch.json.


def of_request(outcome: dict[str, Any]) -> str | None:
    """Why the job ended, and what is saved; None if its end was not requested, or its ranks do not save."""
    asked, what = outcome.get("asked"), outcome.get("stopped_by")
    if not isinstance(asked, dict) or not isinstance(what, str):
        return None
    what, saved, not_saved = one_line(what), _numbers(asked.get("saved")), _numbers(asked.get("not_saved"))
    if not saved:
        return None
    if not_saved:
        return tr("asked to end ({what}); {ranks} did not save", what=what, ranks=named("rank", not_saved))
    epoch, step = _number(asked.get("epoch")), _number(asked.get("step"))
    if epoch is None or step is None:
        return tr("asked to end ({what}); all ranks ended with 0", what=what)
    return tr("asked to end ({what}) at step {step} of epoch {epoch}, saved", what=what, step=step, epoch=epoch)


def all_saved(outcome: dict[str, Any]) -> bool:
    """Whether all ranks have saved after one step."""
    asked = outcome.get("asked")
    return (
        isinstance(asked, dict)
        and _number(asked.get("step")) is not None
        and bool(_numbers(asked.get("saved")))
        and not _numbers(asked.get("not_saved"))
    )


def _numbers(value: object) -> list[int]:
    found = map(_number, value) if isinstance(value, list) else ()
    return [number for number in found if number is not None]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else None
