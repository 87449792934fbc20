"""Says why a launch failed and what to do, from the logs of its ranks and the table of known failures.

The launcher's report runs it after a failure; by hand it explains any earlier run:

  python tools/diagnose.py logs/latest

Known failures are in configs/diagnoses.yaml, before them those of the file that LAUNCH_DIAGNOSES names.
The explanation goes to stdout, and as outcome.diagnosis into the run's launch.json.

Exit: 0 something was said, 2 usage, or RUN_FOLDER holds no run that has ended.
"""

import argparse
import json
import os
import re
import sys
from collections import namedtuple

from hccl_tools.common.words import one_line
from tools.diagnosis import known_failures, log_tail

# What the launcher ends the other ranks with: SIGTERM, after the grace time SIGKILL. No failures of their own.
_STOPPED_BY_US = (128 + 15, 128 + 9)
_MOST_LOGS = 8  # of 1,000 ranks that fail together the first few say it all
_MOST_SHOWN = 3
_MOST_TEXT = 300  # characters of a log's line on the screen

_CHINESE = re.compile("[\u4e00-\u9fff]")


class NoRun(Exception):
    """The folder holds no run that has ended; the text says what is there."""


Member = namedtuple("Member", "name status path log trouble exception")
Member.__doc__ = """A rank, or the scheduler: its RankLog (or None, and `trouble` why) and PythonException (or None)."""

Match = namedtuple("Match", "entry member index sure place")
Match.__doc__ = """A Diagnosis, and where it was seen.

index: of the line in the member's log; None: by its exit status.
sure:  the exit status, or a line of the exception that ended the member, and not merely a line before it.
place: of the entry in the table.
"""


def main(argv=None):
    options = _options(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that knows no Chinese is no reason to fail
    try:
        entries, complaints = known_failures.load()
        if options.when_told:
            told = sys.stdin.readline()
            if not told:  # the launcher has ended without a question
                return 0
            options.oom_kills = int(told)
        launch = read_launch(options.run_folder)
        for line in complaints:
            print(f"diagnose.py: {line}; left out", file=sys.stderr)
        members = read_members(launch["outcome"], options.run_folder)
        if not members:
            print("no rank failed: nothing to explain")
            return 0
        matches = find(entries, members, options.oom_kills)
        print("\n".join(explain(members, matches)))
        sys.stdout.flush()
    except NoRun as error:
        print(f"diagnose.py: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader left; Python flushes once more at its end
    launch["outcome"]["diagnosis"] = as_data(members, matches)
    save(launch, options.run_folder)
    return 0


def _options(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help="the run's folder, with launch.json and the logs")
    parser.add_argument(
        "--oom_kills",
        "--oom-kills",
        metavar="N",
        type=int,
        default=0,
        help="processes that the kernel killed for memory on this machine while the job ran (oom_kill in /proc/vmstat)",
    )
    parser.add_argument(
        "--when_told",
        "--when-told",
        action="store_true",
        help="get ready, and begin when a line comes on stdin: the number of --oom_kills (for the launcher)",
    )
    return parser.parse_args(argv)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_launch(folder):
    """launch.json of a run that has ended, as a dict.  Raises NoRun."""
    path = os.path.join(folder, "launch.json")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            launch = json.load(file)
    except FileNotFoundError as error:
        raise NoRun(f"{one_line(path)}: no such file; name the folder of a run, such as logs/latest") from error
    except OSError as error:
        raise NoRun(f"{one_line(path)}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise NoRun(f"{one_line(path)}: is not JSON: {one_line(error)}") from error
    outcome = launch.get("outcome") if isinstance(launch, dict) else None
    if not isinstance(outcome, dict):
        raise NoRun(f"{one_line(path)}: has no outcome; the run goes on, or its launcher was killed")
    return launch


def read_members(outcome, folder):
    """The Members that failed by themselves, the one that failed first in front; empty if none did."""
    first = outcome.get("first_failure")
    if first is None:
        return []
    first = str(first)
    ended = outcome.get("members")
    ended = ended if isinstance(ended, dict) else {}
    status = {name: entry.get("status") for name, entry in ended.items() if isinstance(entry, dict)}
    status = {name: code for name, code in status.items() if isinstance(code, int)}
    others = [name for name, code in status.items() if name != first and code and code not in _STOPPED_BY_US]
    folder = os.path.join(folder, str(outcome.get("logs") or "."))
    return [_member(name, status.get(name), folder) for name in [first, *others[: _MOST_LOGS - 1]]]


def _member(name, status, folder):
    path = os.path.normpath(os.path.join(folder, f"rank_{name}.log" if name.isdecimal() else f"{name}.log"))
    try:
        log = log_tail.read(path)
    except (OSError, ValueError) as error:  # ValueError: a name that is no file name
        reason = getattr(error, "strerror", None) or error
        return Member(name, status, path, None, f"cannot be read: {reason}", None)
    trouble = None if any(log.lines) else "is empty: it ended before it wrote anything"
    return Member(name, status, path, log, trouble, log_tail.last_exception(log.lines))


# --- finding ----------------------------------------------------------------------------------------------------------


def find(entries, members, oom_kills):
    """The Matches, what explains most first; a code that several members have is named with the first of them."""
    places = {id(entry): place for place, entry in enumerate(entries)}
    found = []
    for member in members:
        entry = known_failures.by_status(entries, member.status, oom_kills)
        if entry:
            found.append(Match(entry, member, None, True, places[id(entry)]))
        since = member.exception.index if member.exception else None
        text = log_tail.without_source(member.log.lines) if member.log else []
        for entry, lines in known_failures.by_lines(entries, text):
            sure = [index for index in lines if since is not None and index >= since]
            found.append(Match(entry, member, sure[0] if sure else lines[-1], bool(sure), places[id(entry)]))
    found.sort(
        key=lambda match: (
            match.entry.vague,
            members.index(match.member),
            not match.sure,
            not _raises(match),
            match.place,
        )
    )
    first_of = {}
    for match in found:
        first_of.setdefault(match.entry.code, match)
    return list(first_of.values())


def _raises(match):
    """Whether it is the first line of the exception's message, and not one of the details that follow it."""
    return match.sure and match.index is not None and match.index == match.member.exception.index


# --- telling ----------------------------------------------------------------------------------------------------------


def explain(members, matches):
    """The lines for a person."""
    lines = _exception_lines(members[0])
    shown = [match for match in matches if not match.entry.vague][:_MOST_SHOWN] or matches[:1]
    for match in shown:
        lines += _match_lines(match)
    rest = [f"{match.entry.code} ({_where(match)})" for match in matches if match not in shown]
    if rest:
        lines.append("also seen: " + ", ".join(rest))
    return lines or [_nothing_known(members[0])]


def _exception_lines(member):
    raised = member.exception
    if not raised:
        return []
    first, *more = f"{raised.type}: {raised.message}".rstrip(": ").split("\n")
    inside = f" in {raised.function}" if raised.function else ""
    lines = [f"{_who(member)}: {_cut(first)}"] + [f"    {_cut(line)}" for line in more]
    return [*lines, f"    raised at {one_line(_short(raised.file))}:{raised.line}{one_line(inside)}"]


def _match_lines(match):
    entry = match.entry
    line = _text(match)
    repeated = match.sure and match.member.exception and line in _raised(match.member.exception)
    early = "" if match.sure or not match.member.exception else ", earlier than the exception"
    said = "" if line is None or repeated else f": {_cut(line.strip())}"
    lines = [f"{entry.code} ({_where(match)}{early}){said}", f"    cause: {entry.cause}", f"    remedy: {entry.remedy}"]
    if entry.zh and (_chinese_reader() or _CHINESE.search(line or "")):
        lines += [f"    原因：{entry.zh[0]}", f"    处理：{entry.zh[1]}"]
    return lines


def _raised(exception):
    return f"{exception.type}: {exception.message}"


def _where(match):
    if match.index is None:
        return f"{_who(match.member)}, exit status {match.member.status}"
    row = f":{match.index + 1}" if match.member.log.whole else ""
    return f"{_who(match.member)}, {one_line(_short(match.member.path))}{row}"


def _nothing_known(member):
    log = f"its log {one_line(_short(member.path))}"
    ended = f"{_who(member)} ended with status {member.status}"
    if member.trouble:
        return f"{ended}; {log} {member.trouble}"
    last = next(line for line in reversed(member.log.lines) if line)
    return (
        f"{ended}; {log} has no Python exception and nothing that configs/diagnoses.yaml knows, it ends: {_cut(last)}"
    )


def _who(member):
    if member.name == "scheduler":
        return "MindSpore's scheduler"
    return f"rank {member.name}" if member.name.isdecimal() else one_line(member.name)  # an engine, such as mpirun


def _text(match):
    return None if match.index is None else match.member.log.lines[match.index]


def _short(path):
    """`path` as it can be named from here."""
    below = os.getcwd() + os.sep
    path = os.path.join(below, path)
    return path[len(below) :] if path.startswith(below) else path


def _cut(text):
    text = one_line(text)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."


def _chinese_reader(environ=os.environ):
    """Does the locale ask for messages in Chinese?  The first of the three that is set decides."""
    set_ones = (environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next(filter(None, set_ones), "").startswith("zh")


# --- launch.json ------------------------------------------------------------------------------------------------------


def as_data(members, matches):
    """What goes into launch.json; see schemas/launch.schema.json."""
    raised = members[0].exception
    exception = raised and {
        "type": raised.type,
        "message": raised.message,
        "file": raised.file,
        "line": raised.line,
    }
    return {"exception": exception, "matches": [_match_data(match) for match in matches]}


def _match_data(match):
    whole = match.index is not None and match.member.log.whole
    return {
        "code": match.entry.code,
        "rank": int(match.member.name) if match.member.name.isdecimal() else match.member.name,
        "line": _text(match),
        "row": match.index + 1 if whole else None,
        "cause": match.entry.cause,
        "remedy": match.entry.remedy,
    }


def save(launch, folder):
    """Writes launch.json anew, whole or not at all."""
    path = os.path.join(folder, "launch.json")
    part = path + ".part"
    try:
        mode = os.stat(path).st_mode & 0o777
        with open(part, "w", encoding="utf-8", errors="backslashreplace") as file:  # \udcff is JSON
            json.dump(launch, file, ensure_ascii=False, indent=2)
            file.write("\n")
        os.chmod(part, mode)
        os.replace(part, path)
    except OSError as error:
        print(f"diagnose.py: {one_line(path)}: the diagnosis is not in it: {error.strerror}", file=sys.stderr)
