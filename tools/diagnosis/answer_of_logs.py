"""The answer about logs that are not a run of ours."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses
from tools.diagnosis import ends, error_lines
from tools.diagnosis.answer import CAUSE, ERRORS, NOTHING, Answer, Cause, in_order, of_end, of_fault, of_verdict, texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.ends import End
    from tools.diagnosis.error_lines import Alike
    from tools.diagnosis.job_logs import Explained


def of_logs(logs: Explained, english: bool = False) -> Answer:
    """The answer of logs that are not a run of ours; english: for programs."""
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
    return _of_errors(error_lines.of_logs(logs), error_lines.folder_of(logs))


def _of_cause(causes: list[Cause], all_ends: list[End]) -> Answer:
    first = causes[0]
    cause, _ = texts(first.entry)
    shown = next((end for end in all_ends if end.path == first.path and (first.line or "").strip() == end.first), None)
    details = [shown.raised] if shown and shown.raised else []
    others = ends.told(all_ends, shown)
    return Answer(kind=CAUSE, sentence=cause, causes=causes, says_cause=True, details=details, others=others)


def _of_errors(errors: list[Alike], folder: str) -> Answer:
    if not errors:
        text = tr(
            "nothing is found: no error of HCCL, no exception, no known failure, no line that looks like an error"
        )
        return Answer(kind=NOTHING, sentence=text)
    first = errors[0]
    sentence = tr("not a known failure; look first at {where}: {line}", where=first.where, line=first.text)
    following = error_lines.commands(errors, folder=folder)
    return Answer(kind=ERRORS, sentence=sentence, quoted=first.text, errors=errors, next=following, path=first.path)
