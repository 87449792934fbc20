"""Checks rank tables: the structure by the JSON Schema, then the additional rules of HCCL.

Prints one line per problem: file and line, JSON pointer, what is wrong, how to correct it, its code.

  python hccl_tools/validate_hccl.py hccl_8p_01234567_127.0.0.1.json
  python hccl_tools/validate_hccl.py --generation 910A *.json
  python hccl_tools/validate_hccl.py --against_host /user/config/rank_table.json
  python hccl_tools/validate_hccl.py --json - <table.json
  python hccl_tools/validate_hccl.py --explain rank-gap

Exit: 0 all tables are good, 1 at least one is bad, 2 usage, or a file that cannot be read.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence

from hccl_tools.check import verdict
from hccl_tools.commands import arguments, boundary
from hccl_tools.common import colours, documents, how_far
from hccl_tools.common.command_line import Parser
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, misused
from hccl_tools.common.words import count
from hccl_tools.machine import host
from hccl_tools.table import formats, given, rank_table
from hccl_tools.table.view import View

PROGRAM = "validate_hccl.py"
_WORDS = {0: "good", 1: "bad", 2: "unreadable"}

say = functools.partial(boundary.say, PROGRAM)


class Judged(Record):
    """The command's results for one file; the last three are known of a good table only.

    unreadable: why the file cannot be read; then there are no problems.
    """

    file: str
    exit: int
    problems: Sequence[Problem] = ()
    unreadable: str | None = None
    table_format: str | None = None
    servers: int | None = None  # None for version 2.0, which has none
    ranks: int | None = None


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(PROGRAM, tr(__doc__))
    parser.add_argument("files", metavar="FILE", nargs="*", help=tr("rank tables; - is standard input"))
    arguments.add_generation(parser)
    parser.json()
    parser.option("against_host")
    arguments.add_hccn_conf(parser)
    parser.option("explain")
    options = parser.parse_args(argv)
    if not options.files and not options.explain:
        parser.error(tr("name at least one FILE, or - for standard input"))
    return options


def run(options: argparse.Namespace) -> int:
    """Judges the files one after the other and prints; returns the exit code."""
    if options.explain:
        return explain(options.explain)
    given.refuse_twice(options.files)
    generation, origin = host.chosen_generation(options.generation)
    results = []
    for path in options.files:
        with how_far.doing(tr("checking {path}", path=given.shown(path))):
            results.append(judge(path, generation, options))
        if not options.json:
            print_text(results[-1], origin)
    if options.json:
        print_json(results, generation)
    return max(result.exit for result in results)


def explain(code: str) -> int:
    """Prints what `code` means; returns the exit code."""
    from hccl_tools.check import explain as explanations  # only here: it imports every rule

    text = explanations.text(code)
    if text is None:
        raise misused("no such code: {code}; the codes are {codes}", code=code, codes=", ".join(explanations.entries()))
    sys.stdout.write(text)
    return 0


def judge(path: str, generation: str | None, options: argparse.Namespace) -> Judged:
    """The verdict on one file; "-" is standard input."""
    try:
        data = given.read_bytes(path)
    except rank_table.NotReadable as error:
        return Judged(file=path, exit=USAGE, unreadable=error.reason)
    table, problems = verdict.check_bytes(data, generation)
    if table is not None and path != given.STDIN and os.path.isfile(path):
        problems += filter(None, [verdict.path_problem(path)])
    if errors(problems):
        return Judged(file=path, exit=1, problems=problems)
    name, _ = formats.detect(table)
    if options.against_host:
        problems += compare_with_host(table, name, options.hccn_conf, data)
    servers, ranks = counts(table, name)
    bad = int(bool(errors(problems)))
    return Judged(file=path, exit=bad, problems=problems, table_format=name, servers=servers, ranks=ranks)


def compare_with_host(table: JsonObject, name: str, conf: str, data: bytes) -> list[Problem]:
    """The problems of a good table on this host."""
    from hccl_tools.check import against_host
    from hccl_tools.table import json_faults

    return json_faults.placed(against_host.problems(table, name, conf), data)


def counts(table: JsonObject, name: str) -> tuple[int | None, int]:
    """How many servers and ranks a good table has; 2.0 has no servers."""
    if name == "v2.0":
        return None, len(table["rank_list"])
    if "server_list" in table:  # may be large: no View for that
        listed = table["server_list"]
        return len(listed), sum(len(server["device"]) for server in listed)
    view = View(table, name)
    return len(view.servers), len(view.devices)


def print_text(result: Judged, origin: str) -> None:
    """Prints one line per problem, then one about the file."""
    shown = given.shown(result.file)
    if result.unreadable:
        say(f"{shown} {result.unreadable}", colours.MISTAKE)
        return
    coloured = colours.wanted(sys.stdout)
    if result.problems:
        print("\n".join(problem_line(problem, shown, coloured) for problem in result.problems))
    bad = len(errors(result.problems))
    warned = len(result.problems) - bad
    found = [count(bad, "problem")] if bad else ["good"]
    found += [count(warned, "warning")] if warned else []
    about = ""
    if not bad:
        servers = "" if result.servers is None else f"servers: {result.servers}, "
        about = f": {formats.FORMATS[result.table_format or '']}, {servers}ranks: {result.ranks}"
    verdict_words = colours.shown(", ".join(found), colours.FAILURE if bad else colours.GOOD, coloured)
    print(f"{shown}: {verdict_words}{about} ({origin})")


def problem_line(problem: Problem, shown: str, coloured: bool) -> str:
    """The line of a problem; on a terminal its place is red or, of a warning, that word yellow."""
    place, kind, rest = problem.parts(shown)
    place = place if kind else colours.shown(place, colours.FAILURE, coloured)
    return f"{place}: {colours.shown(kind, colours.CAUTION, coloured)}{rest}"


def print_json(results: Sequence[Judged], generation: str | None) -> None:
    """Prints one JSON document about all files."""
    files = []
    for result in results:
        entry: JsonObject = {"file": result.file, "verdict": _WORDS[result.exit]}
        if result.table_format:
            entry.update(table_format=result.table_format, servers=result.servers, ranks=result.ranks)
        if result.unreadable:
            entry["unreadable"] = result.unreadable
        entry["problems"] = [problem_as_dict(problem) for problem in result.problems]
        files.append(entry)
    print(documents.json_text({"generation": generation, "files": files}))


def problem_as_dict(problem: Problem) -> JsonObject:
    """A Problem under the names that the JSON output has for it."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "pointer": problem.pointer,
        "line": problem.row,
        "column": problem.column,
        "text": problem.text,
        "remedy": problem.remedy,
    }
