"""Determines the phases of a training from lines of its log: joining, compiling, steps, a checkpoint.

Phases are not guessed: each begins or ends with a line that states it.  These programs print the lines:

  MindSpore        its lines at level INFO or WARNING (GLOG_v=1, 2): cluster_context.cc, meta_server_node.cc,
                   compute_graph_node.cc, frontend_api.cc, pipeline.cc, and its module mindspore.train.serialization
  the scheduler    tools/launch/engines/mindspore_scheduler.py and joining.py, in scheduler.log
  tools/train.py   its line before the first step, in English and Chinese, and those of tools/trainer/
  MindFormers      its base trainer and its callbacks
  MindCV, Hugging Face, NCCL   "Saving model to", "***** Running Evaluation *****", "Init COMPLETE"

Steps and measurements are the lines that configs/progress.yaml describes.
"""

from __future__ import annotations

import re
from bisect import bisect

from hccl_tools.common.record import Row
from tools.logs import line_heads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tools.progress.lines import Kinds, Values

START, IMPORT, JOIN, PREPARE, COMPILE, STEPS, SAVE, EVAL, STOP = (
    "start",  # a line was written, and none tells more
    "import",
    "join",  # the ranks find one another
    "prepare",  # data and network are made
    "compile",  # all until the first step
    "steps",
    "save",  # a checkpoint is written
    "eval",  # held-out data is measured
    "stop",  # training is done
)
PHASES = (START, IMPORT, JOIN, PREPARE, COMPILE, STEPS, SAVE, EVAL, STOP)
MOST = 256  # marks of one block: the first half and the last half of them
_MOST_HITS = 64  # of one text in a block, from its begin and from its end
_LONGEST = 4000  # bytes of a line
_TIME = 120  # bytes in which a line has its time


class Mark(Row):
    """A line that names a phase."""

    phase: str  # of PHASES
    at: float | None  # the time of the line, as tools/logs/line_heads.py reads it; None if it has none
    over: bool = False  # the phase ends with this line; its begin need not be known


class _Entry(Row):
    """A text that names a phase."""

    text: bytes
    phase: str
    over: bool = False
    line: re.Pattern[bytes] | None = None  # the whole line, where the text alone says too little


_SAVES = re.compile(
    rb"\b[Ss]av(?:e|ing) (?:(?:the|current|final|best|model|training) ){0,3}"
    rb"(?:model|checkpoint|ckpt|weights|state)s? (?:to|into|at|in) \S"
)
_SAVED = re.compile(
    rb"\b[Ss]aved (?:(?:the|a|current|final|best|model|training) ){0,3}(?:model|checkpoint|ckpt|weights|state)s?\b"
    rb"|\b(?:[Mm]odel|[Cc]heckpoint|ckpt|[Ww]eights) (?:was |is |has been |successfully )?saved\b"
)
_PLAN = re.compile(
    "rank \\d{1,7}(?: of |，共 )\\d{1,7}(?:: | 个：每个 epoch )"
    "(\\d{1,12})(?: steps an epoch, | 步，)(\\d{1,9})".encode()
)
_JOINED = re.compile(rb"mindspore_scheduler\.py: all \d{1,7} ranks are connected")
_TABLE = (
    _Entry(b"RegGraphExecutor] Start GraphExecutorPy", IMPORT),
    _Entry(b" has loaded MindSpore", JOIN, False, re.compile(rb"mindspore_scheduler\.py: rank \d{1,7} has loaded")),
    _Entry(b"set_ms_role] MS_ROLE of this node is", JOIN),
    _Entry(b"Initialize] Begin to Initialize MetaServerNode", JOIN),
    _Entry(b"Register] Failed to connect to the meta server", JOIN),
    _Entry(b"BuildCluster] Topology build timed out., retry(", JOIN),
    _Entry(b"Init START", JOIN, False, re.compile(rb"NCCL INFO .{0,200}Init START")),
    _Entry(b" ranks are connected", JOIN, True, _JOINED),
    _Entry(b"BuildCluster] Cluster is successfully initialized", JOIN, True),
    _Entry(b"Init COMPLETE", JOIN, True, re.compile(rb"NCCL INFO .{0,200}Init COMPLETE")),
    _Entry(b"....Build Dataset For Train", PREPARE),
    _Entry(b"....Build Net For Train", PREPARE),
    _Entry(b"....Starting Init Train Model", PREPARE),
    _Entry(b" steps an epoch, ", COMPILE, False, _PLAN),
    _Entry("：每个 epoch ".encode(), COMPILE, False, _PLAN),
    _Entry(b"....Model Compiling, Please Wait", COMPILE),
    _Entry(b"[MsProfile] Start compiling", COMPILE),
    _Entry(b"Start compiling, phase: ", COMPILE),
    _Entry(b"...Saving ckpt...", SAVE),
    _Entry(b"Execute the process of saving checkpoint files", SAVE),
    _Entry(b"aving ", SAVE, False, _SAVES),
    _Entry(b"Saving checkpoint process is finished", SAVE, True),
    _Entry(b"aved", SAVE, True, _SAVED),
    _Entry(b"....Starting Evaluate Model", EVAL),
    _Entry(b"***** Running Evaluation *****", EVAL),
    _Entry(b"***** Running evaluation *****", EVAL),
    _Entry(b", early_stop ends the training: ", STOP),
    _Entry(b"....Training Over!", STOP),
    _Entry(b"mindspore_scheduler.py: all ranks have left", STOP),
)


def marks(block: bytes, kinds: Kinds | None = None) -> list[Mark]:
    """The marks in the lines of a block, in order; of consecutive equal ones only the first.

    A block may have any size, and any bytes; a progress bar's \\r counts as no end of a line.
    kinds: finds steps and measurements; without it they are not sought.
    """
    found: dict[int, Mark] = {}  # by the place of the line
    for entry in (entry for entry in _TABLE if entry.text in block):
        for begin, line in _hits(block, entry):
            found.setdefault(begin, Mark(entry.phase, time_of(line), entry.over))
    if kinds is not None:
        found.update(_of_numbers(block, kinds, sorted(found)))
    return _folded(found[begin] for begin in sorted(found))


def after(told: Iterable[Mark], begun: str | None = None) -> str | None:
    """The phase after these marks; None if the last one only ends a phase, and the next one is unknown.

    begun: the phase before them.  After a checkpoint or a measurement in the midst of steps come steps.
    """
    now, steps = begun, begun == STEPS
    for mark in told:
        steps = mark.phase == STEPS or (steps and mark.phase in (SAVE, EVAL))
        now = (STEPS if steps else PREPARE if mark.phase == JOIN else None) if mark.over else mark.phase
    return now


def _hits(block: bytes, entry: _Entry) -> Iterator[tuple[int, bytes]]:
    """(begin of the line, the line) of the lines that have the text of the entry."""
    for place in sorted({*_first(block, entry.text), *_last(block, entry.text)}):
        begin = block.rfind(b"\n", 0, place) + 1
        end = block.find(b"\n", place)
        line = block[begin : min(len(block) if end < 0 else end, begin + _LONGEST)]
        if entry.text in line and (entry.line is None or entry.line.search(line)):
            yield begin, line


def _first(block: bytes, text: bytes) -> Iterator[int]:
    place = block.find(text)
    for _ in range(_MOST_HITS):
        if place < 0:
            return
        yield place
        place = block.find(text, place + len(text))


def _last(block: bytes, text: bytes) -> Iterator[int]:
    place = block.rfind(text)
    for _ in range(_MOST_HITS):
        if place < 0:
            return
        yield place
        place = block.rfind(text, 0, place)


def of_values(values: Values) -> list[Mark]:
    """The phase that the newest numbers of a log show, if no other line names one."""
    phase = _phase_of(values)
    return [Mark(phase, None, phase == EVAL)] if phase else []


def _phase_of(values: Values) -> str | None:
    if "loss" in values or "step" in values:
        return STEPS
    return EVAL if "value" in values or "percent" in values else None


def _of_numbers(block: bytes, kinds: Kinds, others: list[int]) -> Iterator[tuple[int, Mark]]:
    """Steps, and the measurements, which end an evaluation.

    others: where the other marks are.  Of steps in a row, with no other mark between them, only the first is told.
    """
    place, told = 0, None
    for line, values in kinds.of_block(block):
        place = max(place, block.find(line, place))
        phase = _phase_of(values)
        begin = block.rfind(b"\n", 0, place) + 1
        here = phase, bisect(others, begin)
        if phase is not None and here != told:
            yield begin, Mark(phase, time_of(line), phase == EVAL)
            told = here
        place += len(line)


def _folded(told: Iterable[Mark]) -> list[Mark]:
    found: list[Mark] = []
    for mark in told:
        if not found or (mark.phase, mark.over) != (found[-1].phase, found[-1].over):
            found.append(mark)
    return found if len(found) <= MOST else found[: MOST // 2] + found[-MOST // 2 :]


def time_of(line: bytes) -> float | None:
    """The time at the beginning of a line, as line_heads.time_of reads it."""
    return line_heads.time_of(line[:_TIME].decode("utf-8", "replace"))


def plan(block: bytes) -> tuple[int, int] | None:
    """(steps of an epoch, epochs), where tools/train.py reports it before the first step; the last such line counts."""
    found = [*_PLAN.finditer(block)][-1:]
    return (int(found[0][1]), int(found[0][2])) if found else None
