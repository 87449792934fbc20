"""The answer to why a job failed, as one record; the text and the JSON are both built from it.

A run of ours (answer_of_run.py) and logs of others (below) have the same record.  Its texts are in the user's language,
and may be long.  Text from a log is unchanged, except for the characters that move a terminal's cursor.
"""

from __future__ import annotations

from hccl_tools.common import typed
from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, one_line, short_path
from tools.diagnosis import ends, error_lines
from tools.diagnosis.ends import End, near
from tools.diagnosis.verdict import said
from tools.logs import remedies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.diagnosis.ends import End, Other
    from tools.diagnosis.error_lines import Alike
    from tools.diagnosis.faults import Fault
    from tools.diagnosis.find import Match
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.processes import Process
    from tools.diagnosis.verdict import Verdict
    from tools.diagnosis.waits import Target
    from tools.logs.findings import PythonException
    from tools.logs.known_failures import KnownFailure

ROOT, CAUSE, ERRORS, NOTHING, HANG = "root", "cause", "errors", "nothing", "hang"  # what an answer is about


class Cause(Record):
    """A known failure, and the line of a log that shows it."""

    entry: KnownFailure
    who: str  # whose log it is; empty: that is not known
    rank: int | None
    path: str
    row: int | None  # None: it is known by the exit status, or the whole log was not read
    line: str | None  # None: it is known by the exit status
    times: int = 1
    early: bool = False  # it is earlier than the exception that ended the member
    status: int | None = None


class Answer(Record):
    """Why a job failed."""

    kind: str
    sentence: str  # the first line
    quoted: str = ""  # what the sentence has of a log; it may be shortened there
    exception: PythonException | None = None  # that is quoted
    certainty: str = ""  # sure, likely, guess; empty: no rank is named
    why: str = ""
    ranks: list[int] = []  # the roots
    roots: list[Process | Target] = []
    chain: list[str] = []
    details: list[str] = []  # further lines of what the sentence quotes
    path: str = ""  # the log of the root, and the row of what is quoted
    row: int | None = None
    causes: list[Cause] = []  # what explains most comes first
    says_cause: bool = False  # the sentence has the first cause
    others: list[Other] = []  # how other ranks ended
    errors: list[Alike] = []  # lines that look like errors, where nothing is known
    next: list[str] = []  # commands, and what to look at
    not_read: str = ""

    @property
    def raised(self) -> str:
        """The place where the quoted exception was raised."""
        return ends.raised_at(self.exception) if self.exception else ""

    @property
    def found(self) -> bool:
        """Whether the logs hold a cause, a root or an exception, and not merely what looks like errors."""
        return self.kind in (ROOT, CAUSE, HANG)

    @property
    def cause(self) -> Cause | None:
        """The first cause."""
        return self.causes[0] if self.causes else None


def hung(text: str) -> Answer:
    """The answer for a job that --hang_timeout ended while no rank had failed."""
    return Answer(kind=HANG, sentence=text)


def nothing_failed() -> Answer:
    """The answer for a run in which no rank failed."""
    return Answer(kind=NOTHING, sentence=tr("no rank failed: nothing to explain"))


# --- causes -----------------------------------------------------------------------------------------------------------


def of_fault(fault: Fault) -> Cause:
    who = "" if fault.rank is None else tr("rank {rank}", rank=fault.rank)
    line = fault.seen.text.strip()
    return Cause(
        entry=fault.entry, who=who, rank=fault.rank, path=fault.path, row=fault.seen.row, line=line, times=fault.count
    )


def of_match(match: Match) -> Cause:
    member = match.member
    return Cause(
        entry=match.entry,
        who=ends.short_who(member),
        rank=int(member.name) if member.is_rank else None,
        path=member.path,
        row=match.row,
        line=None if match.line is None else match.line.strip(),
        early=bool(member.exception and not match.sure),
        status=member.status,
    )


def in_order(causes: list[Cause]) -> list[Cause]:
    """The codes, each once; those that name an event but hardly its cause come last."""
    once: dict[str, Cause] = {}
    for cause in causes:
        once.setdefault(cause.entry.code, cause)
    return sorted(once.values(), key=lambda cause: cause.entry.vague)


def texts(entry: KnownFailure) -> tuple[str, str]:
    """(cause, remedy) in the user's language, with our commands as the user types them."""
    cause, remedy = entry.zh if speaks_chinese() and entry.zh else (entry.cause, entry.remedy)
    return typed.as_typed(cause), typed.as_typed(remedy)


def for_target(answer: Answer, target: object) -> Answer:
    """The answer with remedies for the device target of the launch: a CPU has no npu-smi."""
    causes = [cause.replace(entry=_entry_for(cause.entry, target)) for cause in answer.causes]
    return answer.replace(causes=causes)


def _entry_for(entry: KnownFailure, target: object) -> KnownFailure:
    chinese = entry.zh and (entry.zh[0], remedies.for_target(entry.zh[1], target))
    return entry.replace(remedy=remedies.for_target(entry.remedy, target), zh=chinese)


# --- what both kinds of answers have ----------------------------------------------------------------------------------


def of_verdict(verdict: Verdict, causes: list[Cause], all_ends: list[End]) -> Answer:
    sentence, root = verdict.sentence, verdict.roots[0] if verdict.roots else None
    findings = getattr(root, "findings", [])
    for one in findings:
        unknown = tr("an unknown rank")
        if unknown in sentence:
            sentence = sentence.replace(unknown, tr("the process of {path}", path=near(one.path)), 1)
    quoted = said(verdict.text) if verdict.text and said(verdict.text) in sentence else ""
    own = next((end for end in all_ends if quoted and end.first == verdict.text.partition("\n")[0]), None)
    mine = next((end for end in all_ends if end is own and any(one.path == end.path for one in findings)), own)
    following = [_nearer(what, findings) for what in verdict.next]
    return Answer(
        kind=ROOT,
        sentence=sentence,
        quoted=quoted,
        exception=mine.exception if mine else None,
        certainty=verdict.certainty,
        why=verdict.why,
        ranks=[one.rank for one in verdict.roots if one.rank is not None],
        roots=verdict.roots,
        chain=verdict.chain,
        details=mine.more if mine else [],
        path=mine.path if mine else "",
        row=mine.row if mine else None,
        causes=causes,
        others=ends.told(all_ends, mine, (one.path for one in findings)),
        next=following,
    )


def _nearer(text: str, findings: Iterable[object]) -> str:
    """The text with the logs' shortest names."""
    for one in findings:
        path = str(getattr(one, "path", ""))
        text = text.replace(one_line(short_path(path)), near(path))
    return text


def of_end(end: End, form: str, all_ends: list[End]) -> Answer:
    """form: the sentence, with {} for what the member said last."""
    return Answer(
        kind=ROOT,
        sentence=form.replace("{}", end.first, 1),
        quoted=end.first,
        exception=end.exception,
        ranks=[] if end.rank is None else [end.rank],
        details=end.more,
        path=end.path,
        row=end.row,
        others=ends.told(all_ends, end),
    )


# ---- The answer about logs that are not a run of ours.


def of_logs(logs: Explained, english: bool = False) -> Answer:
    """The answer for logs that are not a run of ours; english: for programs."""
    verdict = logs.recorded if english else logs.verdict
    causes = in_order([of_fault(fault) for fault in logs.faults])
    all_ends = ends.of_logs(logs)
    if verdict and (verdict.roots or not causes or causes[0].entry.vague):
        return of_verdict(verdict, causes, all_ends)
    if causes:
        answer = _of_cause(causes, all_ends)
        if not verdict:
            return answer
        return answer.replace(certainty=verdict.certainty, why=clauses(verdict.sentence, verdict.why))
    if all_ends:
        return of_end(all_ends[0], tr("{who} ended with {what}", who=all_ends[0].who, what="{}"), all_ends)
    errors = error_lines.of_logs(logs)
    return _of_errors(errors, error_lines.folder_of(logs), [] if errors else error_lines.last_lines(logs))


def _of_cause(causes: list[Cause], all_ends: list[End]) -> Answer:
    first = causes[0]
    cause, _ = texts(first.entry)
    shown = next((end for end in all_ends if end.path == first.path and (first.line or "").strip() == end.first), None)
    details = [shown.raised] if shown and shown.raised else []
    others = ends.told(all_ends, shown)
    return Answer(kind=CAUSE, sentence=cause, causes=causes, says_cause=True, details=details, others=others)


def _of_errors(errors: list[Alike], folder: str, last_lines: list[str]) -> Answer:
    if not errors:
        text = tr("nothing is found: no exception, no known failure, no line that looks like an error")
        return Answer(kind=NOTHING, sentence=text, details=last_lines)
    first = errors[0]
    sentence = tr("not a known failure; look first at {where}: {line}", where=first.where, line=first.text)
    following = error_lines.commands(errors, folder=folder)
    return Answer(kind=ERRORS, sentence=sentence, quoted=first.text, errors=errors, next=following, path=first.path)
