"""The launcher's texts about the job: when the ranks start, at the first failure, and in a table at the end.

They are made from the supervisor's data.  Sentences come without the name of the script, which is printed before them.
The lines of the table and of a log come as they are.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence

from hccl_tools.common import colours
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import marked, tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.words import count, named, short_path, some
from tools.output import alike, lines
from tools.supervise.members import IMPORTS, SCHEDULER, Member, command

ROWS = 16  # with more ranks, ranks that ended the same way share a row
FAILURES = 20  # so many are told when they happen
_SIGNALS: tuple[str, ...] = ("", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL")
_SIGNALS += ("USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", *[""] * 8, "XCPU", "XFSZ", *[""] * 5, "SYS")


# ---- start and end ---------------------------------------------------------------------------------------------------


SILENT = marked(
    "note: all ranks ended with 0 and printed nothing; does the program call what it defines? For a file of "
    "tests: --pytest FILE"
)


def started(devices: Sequence[int], hosts: int, folder: str) -> str:
    """What is about to start, and where its logs are. devices: one for each rank."""
    if not devices:
        return tr("this pod runs no ranks, only MindSpore's scheduler, logs in {folder}", folder=folder)
    names = named("device", devices)
    if hosts > 1:
        names = tr("{devices} of {number} hosts", devices=names, number=hosts)
    return tr("{ranks} on {devices}, logs in {folder}", ranks=count(len(devices), "rank"), devices=names, folder=folder)


def path(name: str) -> str:
    """The path as a message has it: relative to the current folder if it is below it."""
    return short_path(name)


def where(run_dir: str) -> str:
    """What remains of the run in its folder, as the end of a sentence."""
    folder, text = path(run_dir), ""
    if os.path.isfile(os.path.join(run_dir, "launch.json")):
        text = tr("; logs and launch.json are in {folder}", folder=folder)
    elif os.path.isdir(run_dir):
        text = tr("; logs are in {folder}", folder=folder)
    page = os.path.join(run_dir, "report.html")
    return tr("{where}; page: {page}", where=text, page=path(page)) if os.path.isfile(page) else text


def tail(log: str) -> list[str]:
    """A sentence, then the last lines of a log, indented; empty where it has none."""
    found = [f"    {harmless(os.fsdecode(line))}" for line in lines.tail(log)]
    return [tr("the last lines of {log}:", log=path(log)), *found] if found else []


# ---- failures --------------------------------------------------------------------------------------------------------


def failure(member: Member, left: int, goes_on: bool, number: int, lost_host: str = "") -> str | None:
    """The message about a failure when it happens, before the others are stopped, or go on; None: nothing.

    left: ranks that have not ended; number: of failures so far, with this one; lost_host: see `what`
    """
    if number > FAILURES and goes_on:
        more = tr("more ranks fail; the report at the end names them")
        return more if number == FAILURES + 1 else None
    if not left:
        others = ""
    elif left == 1:
        others = tr("; the other rank goes on") if goes_on else tr("; stopping the other rank")
    elif goes_on:
        others = tr("; the other {number} ranks go on", number=left)
    else:
        others = tr("; stopping the other {number} ranks", number=left)
    return colours.styled(what(member, lost_host) + others, colours.FAILURE)


def what(member: Member, lost_host: str = "") -> str:
    """Which member has failed, and how. lost_host: the text of `lost`, if an engine has lost a host."""
    if lost_host:
        return lost_host
    name, signal = who(member), _signal(member.status)
    if member.left_failed:
        return _what_it_left(member, name, signal)
    if member.began is None:
        return tr(
            "{who} could not be started: there are too many processes (see ulimit -u, and the container's limit of "
            "pids)",
            who=name,
        )
    if signal:
        return tr("{who} was ended by SIG{signal} after {seconds} s", who=name, signal=signal, seconds=member.seconds)
    return tr(
        "{who} exited with code {status} after {seconds} s", who=name, status=member.status, seconds=member.seconds
    )


def _what_it_left(member: Member, name: str, signal: str) -> str:
    """The same of a rank that ended with 0 and left a process, which has failed."""
    pid, words = member.left_failed or (0, "")
    process = f"PID {pid}: {harmless(command(words))}" if words else f"PID {pid}"
    if signal:
        return tr(
            "{who} ended with 0 and left a process ({process}), which was ended by SIG{signal} after {seconds} s",
            who=name,
            process=process,
            signal=signal,
            seconds=member.seconds,
        )
    return tr(
        "{who} ended with 0 and left a process ({process}), which exited with code {status} after {seconds} s",
        who=name,
        process=process,
        status=member.status,
        seconds=member.seconds,
    )


def left(ranks: Iterable[Member]) -> list[str]:
    """Sentences about what ranks had left, and was ended because of --leftovers end."""
    found = [rank for rank in ranks if rank.left_ended]
    if not found:
        return []
    names = alike.named([rank.rank for rank in found if rank.rank is not None])
    processes = [f"PID {pid}: {harmless(words)}" for rank in found for pid, words in rank.commands_left()]
    shown = some(processes, 3)
    if len(processes) == 1:
        text = tr("{ranks} ended with 0 and left a process that still ran ({processes})", ranks=names, processes=shown)
    else:
        text = tr(
            "{ranks} ended with 0 and left {number} processes that still ran ({processes})",
            ranks=names,
            number=len(processes),
            processes=shown,
        )
    return [
        tr("{what}; ended because of --leftovers end", what=text),
        tr("to wait for such a process, write wait at the end of the script, or exec before its last command"),
    ]


def who(member: Member) -> str:
    """The member as a message names it."""
    if member.rank is None:
        if member.name == IMPORTS:
            return tr("the process that imports for all ranks")
        return tr("MindSpore's scheduler") if member.name == SCHEDULER else member.name
    rank, device, host = member.rank, member.device, member.host
    if host:
        return tr("rank {rank} (device {device} of {host})", rank=rank, device=device, host=host)
    return tr("rank {rank} (device {device})", rank=rank, device=device)


def ranks_of_lost(host: str, ranks: Iterable[Member]) -> list[Member]:
    """The ranks on a host that an engine has lost.

    Open MPI 4 has the name that the user wrote, 5 the host's own, without its domain.
    """
    return [
        rank for rank in ranks if host in (_without_user(rank.host), rank.told_host, rank.told_host.partition(".")[0])
    ]


def lost(engine: Member, host: str, ranks: Sequence[Member]) -> str:
    """The sentence about a host that the engine has lost.  ranks: those of `ranks_of_lost`."""
    if ranks:
        numbers = named("rank", (rank.rank for rank in ranks if rank.rank is not None))
        host = f"{_without_user(ranks[-1].host)} ({numbers})"
    return tr(
        "the host {host} is lost after {seconds} s: {engine} can no longer reach it; check that it is up, and its"
        " network",
        host=host,
        seconds=engine.seconds,
        engine=engine.name,
    )


def _without_user(host: str) -> str:
    return host.partition("@")[2] if "@" in host else host


def _signal(status: int | None) -> str:
    """The signal that an exit status stands for: 128+N is signal N.  A program may also exit with such a number."""
    return _SIGNALS[status - 128] if status is not None and 128 <= status < 128 + len(_SIGNALS) else ""


# ---- the table -------------------------------------------------------------------------------------------------------


def failed_ranks(ranks: Sequence[Member]) -> str | None:
    """Which ranks failed by themselves, where the others went on."""
    found = [rank.rank for rank in ranks if rank.failed and rank.rank is not None]
    if not found or len(ranks) == 1:
        return None
    names = alike.named(found)
    text = tr("{failed} of {all} ranks failed: {ranks} (--keep_going)", failed=len(found), all=len(ranks), ranks=names)
    return colours.styled(text, colours.FAILURE)


def table(
    ranks: Sequence[Member], first: Member | None, lost_ranks: Container[int | None], stopping: bool
) -> list[str]:
    """The table of all ranks, with their hosts if there are several; many ranks share rows.

    first: failed first; lost_ranks: those of a host that the engine has lost; stopping: we have told the others to end
    """
    ends = _Ends(first, lost_ranks, stopping)
    hosts = any(rank.host for rank in ranks)
    place = _cell(tr("host"), 16) if hosts else ""
    rows: list[str] = [
        colours.styled(_row(tr("rank"), tr("device"), place, tr("exit"), tr("time"), tr("log")), colours.HEAD)
    ]
    few = len(ranks) <= ROWS
    shown = ranks if few else [rank for rank in ranks if rank is first]
    for rank in [one for last in shown for one in (*last.earlier, last)]:
        seconds = rank.seconds if rank.seconds == "-" else f"{rank.seconds} s"
        place = _cell(harmless(rank.host), 15) + " " if hosts else ""
        log = harmless(path(rank.log))
        row = _row(str(rank.rank), str(rank.device), place, ends.of(rank), seconds, log)
        rows.append(colours.styled(row, colours.FAILURE) if rank is first or rank.failed else row)
    if not few:
        ways = grouped((ends.of(rank), rank.rank or 0) for rank in ranks if rank is not first)
        rows += [f"{how}: {alike.named(same)}" for how, same in ways.items()]
        if again := [rank.rank for rank in ranks if rank.earlier and rank.rank is not None]:
            rows.append(tr("restarted: {ranks}", ranks=alike.named(again)))
    return rows


class _Ends:
    """How ranks have ended, as text.  Each way becomes text once, not for each rank."""

    def __init__(self, first: Member | None, lost_ranks: Container[int | None], stopping: bool) -> None:
        self._first, self._lost_ranks, self._stopping = first, lost_ranks, stopping
        self._words: dict[tuple[object, ...], str] = {}

    def of(self, rank: Member) -> str:
        """The column of the table."""
        gone = rank.lost and rank.rank in self._lost_ranks
        key: tuple[object, ...] = (rank.status, rank.began is None, rank.failed, rank.lost, gone, rank is self._first)
        key += (rank.handed, rank.again)
        if key not in self._words:
            self._words[key] = self._in_words(rank, gone)
        return self._words[key]

    def _in_words(self, rank: Member, gone: bool) -> str:
        if rank.status is None or rank.began is None:
            return tr("not started")
        if rank.lost:
            return tr("lost with its host") if gone else tr("end not reported")
        signal = _signal(rank.status)
        text = f"{rank.status} SIG{signal}" if signal else str(rank.status)
        if rank is self._first:
            text += tr(", failed first")
        elif rank.failed:
            text += tr(", failed")
        elif rank.again:
            text += tr(", restarted")
        elif signal and self._stopping and not rank.handed:
            text += tr(", stopped by us")
        return text


def _row(rank: str, device: str, host: str, how: str, seconds: str, log: str) -> str:
    """A row of the table.  The host has the width of its column already."""
    return f"{_cell(rank, 5)} {_cell(device, 7)} {host}{_cell(how, 28)} {_cell(seconds, 9)} {log}"


def _cell(text: str, columns: int) -> str:
    """The text with blanks up to this width; a Chinese character is two columns wide."""
    return text + " " * (columns - len(text) - sum(not c.isascii() for c in text))
