"""Formats the answer as lines for people: at most 12 of 200 characters, the answer itself first, and nothing twice.

A long line is cut between clauses, and never within a quoted command. One of a log loses its middle.

Some texts have a style (see colours.Styled): the failure that was found, and the labels of its meaning and its remedy.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common import colours
from hccl_tools.common.language import speaks_chinese, tr
from hccl_tools.common.words import listed, one_line
from tools.diagnosis import answer as answers
from tools.diagnosis import error_lines, job_logs
from tools.diagnosis.answer import texts
from tools.diagnosis.ends import near
from tools.diagnosis.verdict import headless
from tools.logs import loud

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.diagnosis.answer import Answer, Cause
    from tools.diagnosis.verdict import Verdict
    from tools.logs.known_failures import KnownFailure

_STRONG = re.compile(r"; |\. |；|。")  # between clauses
_WEAK = re.compile(r", |，|: |：| \(| ")
_OF_MATCH = 40  # characters of what a known failure takes of a line, which are shown
_LONGEST_WORD = 40
_OF_END = 45  # percent of a line that is too long
_LEAST_TO_SPLIT = 80  # characters: less shows only its beginning
_INDENT = "        "
MOST_LINES = 12
COLUMNS = 200
_NAME_OF_SCRIPT = 24  # columns that the report of a launch puts before each line
_MOST_ALSO = 8
_MOST_OF_REMEDY = 4  # lines: the step that helps may be its last
_KERNEL = "dmesg -T"  # the command that states what the kernel killed
_CHINESE = re.compile("[\u4e00-\u9fff]")


def of_run(answer: Answer, folder: str, brief: bool = False) -> list[str]:
    """The lines about a run of ours.  brief: below the report of a launch, which names its script on each line."""
    if not brief:
        return lines_of(answer)
    return lines_of(answer, COLUMNS - _NAME_OF_SCRIPT, tr("more: {command}", command=job_logs.command(folder)))


def root_lines(verdict: Verdict, brief: bool = False) -> list[str]:
    """Only the root, how sure that is and why, and what to look at next: for a report with other contents, too."""
    lines = [tr("root: {sentence}", sentence=verdict.sentence)]
    lines.append("    " + how_sure(verdict.certainty, verdict.why))
    lines += ["    " + tr("next: {what}", what=what) for what in verdict.next[: 2 if brief else 4]]
    return [line for text in lines for line in folded(text, COLUMNS - _NAME_OF_SCRIPT)]


def lines_of(answer: Answer, columns: int = COLUMNS, more: str = "") -> list[str]:
    """The lines of the answer; if they are too many, `more` replaces the least informative ones."""
    writer = _Writer(columns)
    writer.answer(answer)
    writer.sure(answer)
    if answer.cause:
        writer.cause(answer, answer.cause)
    writer.errors(answer)
    for other in answer.others:
        raised = listed(["", other.raised]) if other.raised else ""
        writer.add(5, "", tr("{who}: {text}", who=other.who, text="{}") + raised, other.text)
    for number, what in enumerate(answer.next):
        writer.next(what, 4 if number == 0 else 6 + number)
    for line in answer.chain[:3]:
        writer.add(9, line)
    writer.also(answer.causes[1:])
    if answer.not_read:
        writer.add(1, answer.not_read)
    return writer.lines(more)


def how_sure(certainty: str, why: str) -> str:
    """``how sure: likely; it ended first``."""
    known = {"sure": tr("sure"), "likely": tr("likely"), "guess": tr("a guess")}
    return tr("how sure: {certainty}; {why}", certainty=known.get(certainty, certainty), why=why)


class _Writer:
    """Collects lines with their weight; knows what it has, so that nothing comes twice."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._rows: list[tuple[int, str]] = []  # the smaller the number, the more it states
        self._said: set[str] = set()  # texts that come once
        self._paths: set[str] = set()  # logs that are named
        self._placed = False  # the first line states where the cause is seen

    def lines(self, more: str) -> list[str]:
        """The lines that fit."""
        rows = list(self._rows)
        if len(rows) <= MOST_LINES or len(more) > self._columns:
            more = ""
        while len(rows) > MOST_LINES - bool(more):
            most = max(weight for weight, _ in rows)
            place = max(number for number, (weight, _) in enumerate(rows) if weight == most)
            del rows[place]
        return [line for _, line in rows] + ([more] if more else [])

    def add(self, weight: int, text: str, form: str = "", quoted: str = "", style: str = "", most: int = 2) -> None:
        """A line below the answer; with a form, {} is what a log has, cut to what fits.  style: of its first part.

        most: lines; more of the text is left out.
        """
        if form:
            room = self._columns - len(form) - 4
            text = form.replace("{}", cut(quoted, max(20, room)), 1)
        text = one_line(text)
        if text and text not in self._said:
            self._said.add(text)
            first, *more = folded("    " + text, self._columns, most)
            self._rows += [(weight, line) for line in (colours.styled(first, style) if style else first, *more)]

    def answer(self, answer: Answer) -> None:
        """The first line: the sentence, and where it was raised."""
        sentence, quoted = one_line(answer.sentence), one_line(answer.quoted)
        raised = listed(["", one_line(answer.raised)]) if answer.raised else ""
        suffix = self._suffix(answer, self._columns - len(sentence) - len(raised))
        if quoted and quoted in sentence:
            room = self._columns - (len(sentence) - len(quoted)) - len(raised) - len(suffix)
            short = cut(quoted, max(40, room))
            sentence = sentence.replace(quoted, short + raised, 1)
            self._said |= {quoted, short}
        elif raised:
            sentence += raised
        paths = [answer.path, *(cause.path for cause in answer.causes), *(one.path for one in answer.errors)]
        self._paths |= {near(path) for path in paths if path and near(path) in sentence}
        style = colours.HEAD if answer.kind in (answers.HANG, answers.NOTHING) else colours.FAILURE
        self._rows += [(0, colours.styled(line, style)) for line in folded(sentence + suffix, self._columns)]
        for line in answer.details:
            self.add(8, cut(line, self._columns - 4))

    def _suffix(self, answer: Answer, room: int) -> str:
        """The code of the cause that the sentence has; where that is all, whose log has it, too, if that fits."""
        cause = answer.cause
        if not cause or not answer.says_cause:
            return ""
        code = tr(" ({where})", where=cause.entry.code)
        if answer.kind != answers.CAUSE:
            return code
        parts = [cause.entry.code, cause.who, near(cause.path) + ("" if cause.row is None else f":{cause.row}")]
        whole = tr(" ({where})", where=listed(filter(None, parts)))
        if len(whole) > room:
            return code
        self._placed = True
        self._paths.add(near(cause.path))
        return whole

    def sure(self, answer: Answer) -> None:
        """How sure it is, and why."""
        if answer.certainty:
            self.add(1, how_sure(answer.certainty, answer.why))

    def cause(self, answer: Answer, cause: Cause) -> None:
        """The known failure: what it means, where it is seen, what to do."""
        text, remedy = texts(cause.entry)
        if not answer.says_cause:
            self.add(1, tr("cause: {cause} ({code})", cause=text, code=cause.entry.code), style=colours.LABEL)
        self._seen(answer, cause)
        if remedy:  # none of its steps may be for this device target
            self.add(2, tr("remedy: {remedy}", remedy=remedy), style=colours.LABEL, most=_MOST_OF_REMEDY)
        entry = cause.entry
        if entry.zh and not speaks_chinese() and _CHINESE.search(cause.line or ""):  # its writer may read no English
            self.add(3, f"原因：{entry.zh[0]}", style=colours.LABEL)
            self.add(3, f"处理：{entry.zh[1]}" if entry.zh[1] else "", style=colours.LABEL)

    def errors(self, answer: Answer) -> None:
        """The lines that look like errors; of the answer's log their rows."""
        first = 1 if answer.kind == answers.ERRORS else 0
        for line in answer.errors[first:][: error_lines.MOST - first]:
            where = line.where
            if line.path == answer.path and answer.kind == answers.ERRORS:
                where = tr("line {row}", row=line.row)
            self._paths.add(near(line.path))
            self.add(3, "", tr("{where}: {text}", where=where, text="{}"), line.text)

    def _seen(self, answer: Answer, cause: Cause) -> None:
        line = headless(cause.line or "").removeprefix("E ").strip()  # pytest's E
        said = [one_line(text) for text in (answer.quoted, *answer.details)]
        shown = bool(line) and any(line in text or (len(text) > 20 and text in line) for text in said)
        place = "" if self._placed else self._place(cause, answer)
        if not line or shown:
            if place:
                self.add(2, tr("seen: {where}", where=place))
            return
        form = tr("seen: {where}: {line}", where=place, line="{}") if place else tr("seen: {line}", line="{}")
        self.add(2, "", form, window(line, cause.entry, self._columns - 4 - len(form)))

    def _place(self, cause: Cause, answer: Answer) -> str:
        """``rank 1, logs/rank_1.log:4, 3 times``; the rank only where it is not the root."""
        path = near(cause.path)
        parts = [] if not cause.who or [cause.rank] == answer.ranks or cause.who in answer.sentence else [cause.who]
        if cause.line is None:
            parts.append(tr("exit status {status}", status=cause.status))
            return listed(parts) if len(parts) > 1 or str(cause.status) not in answer.sentence else ""
        if path in self._paths:
            parts += [] if cause.row is None else [tr("line {row}", row=cause.row)]
        else:
            parts.append(path if cause.row is None else f"{path}:{cause.row}")
            self._paths.add(path)
        if cause.early:
            parts.append(tr("earlier than the exception"))
        elif cause.times > 1:
            parts.append(tr("{count} times", count=cause.times))
        return listed(parts)

    def next(self, what: str, weight: int) -> None:
        """A command, or what to look at; not a log or a command that was named above."""
        if any(what.endswith(path) or f"{path}:" in what for path in self._paths):
            return
        if _KERNEL in what and any(_KERNEL in text for text in self._said):
            return  # the remedy has it, and the first line the host
        self.add(weight, tr("next: {what}", what=what), style=colours.LABEL)

    def also(self, causes: list[Cause]) -> None:
        """The other known failures: two with their causes, the rest by their codes."""
        for cause in [one for one in causes if not one.entry.vague][:2]:
            text = texts(cause.entry)[0]
            self.add(7, tr("also: {cause} ({code})", cause=text, code=self._coded(cause)))
        shown = [one for one in causes if not one.entry.vague][:2]
        rest = [self._coded(one) for one in causes if one not in shown]
        if rest:
            self.add(8, tr("also seen: {failures}", failures=listed(rest[:_MOST_ALSO])))

    def _coded(self, cause: Cause) -> str:
        """Its code, and whose log has it."""
        where = cause.who or ("" if near(cause.path) in self._paths else one_line(os.path.basename(cause.path)))
        return tr("{code} in {where}", code=cause.entry.code, where=where) if where else cause.entry.code


def cut(text: str, room: int) -> str:
    """The text in one line of at most so many characters; its middle is left out, because a reason often ends it."""
    room = max(room, 3)
    whole = len(text) < loud.LONGEST  # otherwise its reader may have cut it, and its end is not known
    last = room * _OF_END // 100 if whole and room >= _LEAST_TO_SPLIT else 0
    if len(text) <= 4 * room and len(text := one_line(text)) <= room:
        return text
    head, end = one_line(text[:room])[: room - last - 3], one_line(text[-last:])[-last:] if last else ""
    if not end:
        return head + "..."
    begin, space = head.rfind(" ", len(head) - _LONGEST_WORD) + 1, end.find(" ", 0, _LONGEST_WORD)
    return (head[:begin] if begin else head) + "..." + (end[space:] if space >= 0 else end)


def folded(line: str, columns: int, most: int = 2) -> list[str]:
    """The line, or at most so many: all but the first are indented more; ... shows that something is left out."""
    found: list[str] = []
    while len(line) > columns and len(found) < most - 1:
        place = _place(line, columns)
        if not place:
            return [*found, line[: columns - 3] + "..."]
        found.append(line[:place].rstrip())
        line = _INDENT + line[place:].strip()
    if len(line) > columns:
        end = _place(line, columns - 4, whole=True)
        line = line[:end].rstrip(" ;；,，:：") + " ..." if end else line[: columns - 3] + "..."
    return [*found, line]


def _place(line: str, columns: int, whole: bool = False) -> int:
    """Where the line may be broken, so that so much fits; 0: nowhere.  whole: between clauses, if that is possible."""
    for pattern, least in ((_STRONG, len(_INDENT) + 1 if whole else columns // 3), (_WEAK, columns // 3)):
        places = [found.end() for found in pattern.finditer(line, len(_INDENT) + 1, columns + 1)]
        places = [place for place in places if least <= place <= columns and not _is_quoted(line, place)]
        if places:
            return places[-1]
    return 0


def _is_quoted(line: str, place: int) -> bool:
    return line.count('"', 0, place) % 2 == 1 or line.count("`", 0, place) % 2 == 1


def window(text: str, entry: KnownFailure, room: int) -> str:
    """The part of a long line that the known failure is about."""
    if len(text) <= room or room < 40:
        return text
    found = [match for match in (pattern.search(text) for pattern in entry.patterns) if match]
    begins = [match.start() for match in found] or [text.find(words[0]) for words in entry.words if words[0] in text]
    begin = min(begins, default=0)
    if begin < room // 2:
        return text
    from_here = begin - room // 4
    word = text.rfind(" ", max(0, from_here - _LONGEST_WORD), from_here) + 1  # names of pods and hosts are whole
    shown = "..." + text[word or from_here :]
    short = cut(shown, room)  # this leaves out a part in the middle, and keeps the end
    return short if text[begin : begin + _OF_MATCH] in short else shown[: room - 3] + "..."
