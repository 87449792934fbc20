"""Merges the rank tables of single servers into the one table of their cluster.

Servers are sorted by the dictionary order of server_id, as MindSpore requires.  The ranks are
numbered 0 to N-1 in that order.  Everything else stays as it is in the tables.  The result is
written to the current folder as hccl_<servers>s_<ranks>p.json, whole or not at all, and its path is
printed on stdout.  Give the same file to every host.  Tables of version 2.0 have no server_id: their
ranks are numbered in the order in which the files are named.

  python hccl_tools/merge_hccl.py hccl_8p_*.json
  python hccl_tools/merge_hccl.py 10.0.0.1.json 10.0.0.2.json --output cluster.json
  python hccl_tools/merge_hccl.py hccl_2s_16p.json hccl_8p_01234567_10.0.0.3.json --stdout
  ssh 10.0.0.3 cat table.json | python hccl_tools/merge_hccl.py hccl_2s_16p.json -

Exit: 0 the table is written, 1 these tables do not make a good one, 2 usage, or a file that cannot
be used.
"""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Sequence

from hccl_tools.build import from_legacy, merging, output
from hccl_tools.commands import arguments, boundary
from hccl_tools.common import how_far
from hccl_tools.common.command_line import Parser
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD, USAGE, Refusal, misused
from hccl_tools.common.words import clauses, count, one_line
from hccl_tools.machine import host
from hccl_tools.table import rank_table

PROGRAM = "merge_hccl.py"

say = functools.partial(boundary.say, PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(PROGRAM, tr(__doc__))
    words = tr("rank tables, of one server or several each; - is standard input")
    parser.add_argument("files", metavar="FILE", nargs="+", help=words)
    arguments.add_generation(parser)
    arguments.add_output(parser, "hccl_<servers>s_<ranks>p.json")
    return arguments.parse_with_output(parser, argv)


def run(options: argparse.Namespace) -> int:
    """Reads, merges and writes; returns the exit code."""
    generation, origin = host.chosen_generation(options.generation)
    try:
        tables = read_all(options.files)
        with how_far.doing(tr("merging {tables}", tables=count(len(tables), "table"))):
            table = merging.merge(tables, generation)
    except merging.Refused as refusal:
        ending = f"{tr(output.NOT_WRITTEN)} ({count(len(refusal.lines), 'problem')})"
        raise Refusal(refusal.status, *refusal.lines, ending) from refusal
    path = options.output or merging.file_name(table)
    if not options.stdout:
        refuse_input(path, options.files, table)
    say(about(table, tables, origin))
    output.deliver(table, options, path, {"generation": generation, "merged": options.files}, say)
    return 0


def about(table: JsonObject, inputs: Sequence[merging.Named], origin: str) -> str:
    """The result in a line; origin: where the rules come from, as text."""
    if "rank_list" in table:
        return tr(
            "tables: {number} in the order given, from {first} to {last}, ranks: {ranks} ({origin})",
            number=len(inputs),
            first=one_line(inputs[0].name),
            last=one_line(inputs[-1].name),
            ranks=len(table["rank_list"]),
            origin=origin,
        )
    servers = table["server_list"]
    return tr(
        "servers: {servers} from {first} to {last}, ranks: {ranks} ({origin})",
        servers=len(servers),
        first=servers[0]["server_id"],
        last=servers[-1]["server_id"],
        ranks=sum(len(server["device"]) for server in servers),
        origin=origin,
    )


def read_all(files: Sequence[str]) -> list[merging.Named]:
    """The tables of `files`.  Raises Refusal."""
    rank_table.refuse_twice(files)
    inputs, lines = [], []
    for path in files:
        try:
            with how_far.doing(tr("reading {path}", path=rank_table.shown_name(path))):
                table, problems = rank_table.read_named(path)
        except rank_table.NotReadable as error:
            raise Refusal(USAGE, clauses(str(error), tr(output.NOT_WRITTEN))) from error
        lines += [problem.line(rank_table.shown_name(path)) for problem in problems]
        if not problems:
            legacy = from_legacy.converted(table)
            if legacy:
                say(from_legacy.remark(rank_table.shown_name(path), ""))
            inputs.append(
                merging.Named(
                    name=rank_table.shown_name(path) if path == rank_table.STDIN else path, table=legacy or table
                )
            )
    if lines:
        raise merging.Refused(BAD, *lines, *(line for item in inputs for line in merging.faults(item)))
    return inputs


def refuse_input(path: str, files: Sequence[str], table: JsonObject) -> None:
    """Raises Refusal if writing `table` to `path` would change one of the inputs."""
    if not os.path.exists(path) or rank_table.read(path)[0] == table:
        return
    target = os.path.realpath(path)
    if any(os.path.realpath(name) == target for name in files):
        raise misused("{path} is one of the tables to merge; name another file with --output", path=one_line(path))
