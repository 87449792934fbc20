"""Explains why a launch failed and what to do, from its logs and the table of known failures.

  python tools/diagnose.py                        the newest run, logs/latest
  python tools/diagnose.py logs/RUN               a run, its plogs, and what its ranks printed
  python tools/diagnose.py FOLDER FILE.tar.gz     logs of any job: plogs, device logs, ranks' output, dmesg
  python tools/diagnose.py --json LOGS            the answer for programs; see schemas/diagnosis.schema.json
  python tools/diagnose.py --bundle NEW.tar.gz    packs the newest run's logs for someone who can help

The launcher's report runs it after a failure.  The first line is the answer: the rank that really failed first.  Then
follow how sure that is and why, the cause, the remedy and the next command, in 12 lines at most.
It reads folders with everything below them, and gzip and tar files directly.
Known failures are in the file that LAUNCH_DIAGNOSES names, in configs/diagnoses.yaml, then in configs/faults/.
The explanation goes to stdout, and for a run also to its launch.json as outcome.diagnosis; stderr lists what was read.

Exit: 0 found a rank that failed, an exception or a known failure, or wrote the bundle, 1 found none of these, as
after a run in which no rank failed, 2 usage, RUN holds no run that has ended, or no bundle can be written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hccl_tools.common import colours, documents, how_far
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import in_english, strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import one_line
from tools.diagnosis import answer as answers
from tools.diagnosis import answer_data, answer_of_run, find, hang, run, words
from tools.launch import record
from tools.logs import known_failures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.diagnosis.answer import Answer
    from tools.diagnosis.job_logs import Explained
    from tools.diagnosis.run import Member
    from tools.logs.known_failures import KnownFailure

    Known = tuple[list[KnownFailure], list[str]]

NEWEST = os.path.join("logs", "latest")
FOUND, NOTHING = 0, 1  # exit codes


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know Chinese
    with how_far.showing():
        return _run(options, options.logs or [NEWEST])


def _run(options: argparse.Namespace, paths: list[str]) -> int:
    known = known_failures.load()
    if options.bundle is not None:
        from tools.diagnosis.bundle import make

        is_run = len(paths) == 1 and _is_run(paths[0])
        return make.make(options.bundle, options.bundle_limit, paths, is_run, lambda: _explain(paths, known, options))
    return _explain(paths, known, options)


def _explain(paths: list[str], known: Known, options: argparse.Namespace) -> int:
    try:
        if len(paths) == 1 and _is_run(paths[0]):
            return explain_run(paths[0], known, options.oom_kills, options.events, options.json)
        return explain_logs(paths, known, options.events, options.json)
    except OSError as error:
        return _tell([f"{error.filename}: {strerror(error)}"], USAGE)


def _is_run(path: str) -> bool:
    """Whether it is a run's folder, or nothing at all, which the reader of runs refuses best."""
    return os.path.lexists(record.path(path)) if os.path.isdir(path) else not os.path.exists(path)


def explain_run(folder: str, known: Known, oom_kills: int, events: str | None = None, as_json: bool = False) -> int:
    """Reports why the run of the folder failed, and adds that to its launch.json; returns the exit code."""
    try:
        launch = run.read_launch(folder)
    except Refusal as error:
        return _tell(error.lines, error.status)
    answer = _explain_launch(launch, folder, known, oom_kills, events=events, as_json=as_json)
    if answer.ranks or "diagnosis" in launch["outcome"]:
        find.save(launch, folder)
    return FOUND if answer.found else NOTHING


def explain(
    launch: dict[str, Any],
    folder: str,
    known: Known,
    oom_kills: int,
    at_end: bool = False,
    tell: Callable[[list[str]], None] | None = None,
) -> bool:
    """Reports why the run of the folder failed, and adds that to `launch`; returns whether a rank has failed.

    at_end: in the report after the failure, so briefly; tell: gets the lines, which else are printed.
    """
    answer = _explain_launch(launch, folder, known, oom_kills, at_end, tell=tell)
    return answer.kind not in (answers.HANG, answers.NOTHING)


def _explain_launch(
    launch: dict[str, Any],
    folder: str,
    known: Known,
    oom_kills: int,
    at_end: bool = False,
    events: str | None = None,
    as_json: bool = False,
    tell: Callable[[list[str]], None] | None = None,
) -> Answer:
    entries, complaints = known
    _tell([tr("{line}; left out", line=line) for line in complaints])
    members = run.read_members(launch, folder)
    if not members:
        return _nothing_failed(launch, folder, as_json)
    target = launch.get("device_target")
    matches = find.causes(entries, members, oom_kills, target if target in known_failures.TARGETS else None)
    logs = _logs(launch, folder, entries, at_end)
    ranks = len(run.places_of(launch))
    answer = answers.for_target(answer_of_run.of_run(members, matches, logs, ranks), target)
    if as_json:
        with in_english():
            english = answer_of_run.of_run(members, matches, logs, ranks, english=True)
            english = answers.for_target(english, target)
            _print_json(answer_data.of_run(english, logs, launch, folder))
    else:
        (tell or _print)(words.of_run(answer, folder, brief=at_end))
    launch["outcome"]["diagnosis"] = find.as_data(members, matches, logs)
    if events:
        _write_events(events, logs, members)
    return answer


def _nothing_failed(launch: dict[str, Any], folder: str, as_json: bool) -> Answer:
    """Reports what is known of a run in which no rank failed: perhaps it hung."""

    def answer() -> Answer:
        hung = hang.of_run(launch, folder)
        return answers.hung(hung) if hung else answers.nothing_failed()

    if as_json:
        with in_english():
            _print_json(answer_data.of_run(answer(), None, launch, folder))
    else:
        _print([answer().sentence])
    return answer()


def _logs(launch: dict[str, Any], folder: str, entries: list[KnownFailure], at_end: bool) -> Explained | None:
    """What the plogs say; None, where there are none, or they cannot be read."""
    from tools.diagnosis import job_logs

    try:
        logs = job_logs.of_run(launch, folder, entries, at_end)
    except OSError as error:
        _tell([f"{error.filename}: {strerror(error)}"])
        return None
    if logs and not at_end:
        _tell(job_logs.summary(logs))
    return logs


def explain_logs(paths: list[str], known: Known, events: str | None = None, as_json: bool = False) -> int:
    """Prints what the logs of a job show; returns the exit code.  Raises OSError: a path does not exist."""
    from tools.diagnosis import job_logs

    entries, complaints = known
    _tell([tr("{line}; left out", line=line) for line in complaints])
    logs = job_logs.of_paths(paths, entries)
    if not logs.reading.findings:
        shown = ", ".join(map(one_line, paths))
        return _tell(
            [tr("{paths}: no logs in it; name the folder of a run, such as logs/latest, or of logs", paths=shown)],
            USAGE,
        )
    _tell(job_logs.summary(logs))
    answer = answers.of_logs(logs)
    if as_json:
        with in_english():
            _print_json(answer_data.of_logs(answers.of_logs(logs, english=True), logs))
    else:
        _print(words.lines_of(answer))
    if events:
        _write_events(events, logs, [])
    return FOUND if answer.found else NOTHING


def _write_events(path: str, logs: Explained | None, members: list[Member]) -> None:
    answer_data.write_events(path, answer_data.events_of_job(logs, members))


def _print_json(data: dict[str, Any]) -> None:
    _print([documents.json_text(data)], raw=True)


def _print(lines: Sequence[str], raw: bool = False) -> None:
    """raw: JSON, in which nothing can move a cursor."""
    coloured = colours.wanted(sys.stdout)
    shown = lines if raw else [colours.shown(one_line(line), colours.style_of(line), coloured) for line in lines]
    try:
        print("\n".join(shown), flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader left; Python flushes once more at its end


def _tell(lines: Sequence[str], status: int = 0) -> int:
    for line in lines:
        print(f"{name_of('diagnose.py')}: {one_line(line)}", file=sys.stderr)
    return status


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=tr(__doc__))
    parser.add_argument(
        "logs",
        nargs="*",
        metavar="RUN|FOLDER|FILE",
        help=tr("a run's folder, with launch.json; or folders, archives and files of logs (default: logs/latest)"),
    )
    parser.option("events")
    parser.json()
    parser.option("bundle")
    parser.option("bundle_limit", type=int, default=256)
    parser.option("oom_kills", type=int, default=0)
    options = parser.parse_args(argv)
    if options.json and (options.events == "-" or options.bundle is not None):
        parser.error(tr("--json prints one document, so it cannot be combined with --bundle or --events -"))
    return options
