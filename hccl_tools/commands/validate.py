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
from collections.abc import Iterator, Sequence

from hccl_tools.check import verdict
from hccl_tools.commands import arguments, boundary
from hccl_tools.common import colours, documents, how_far
from hccl_tools.common.command_line import Parser
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.problem import Problem, errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import count, shown
from hccl_tools.machine import hccn, host, visible
from hccl_tools.table import formats, rank_table
from hccl_tools.table.address import is_one_of
from hccl_tools.table.view import Server, View, names_of, number, objects

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
    rank_table.refuse_twice(options.files)
    generation, origin = host.chosen_generation(options.generation)
    results = []
    for path in options.files:
        with how_far.doing(tr("checking {path}", path=rank_table.shown_name(path))):
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
        data = rank_table.bytes_of(path)
    except rank_table.NotReadable as error:
        return Judged(file=path, exit=USAGE, unreadable=error.reason)
    table, problems = verdict.check_bytes(data, generation)
    if table is not None and path != rank_table.STDIN and os.path.isfile(path):
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
    from hccl_tools.table import json_faults

    return json_faults.placed(problems(table, name, conf), data)


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
    shown = rank_table.shown_name(result.file)
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


def problems(table: JsonObject, name: str, conf: str = hccn.DEFAULT_CONF) -> list[Problem]:
    """The Problems of a table of format `name` on this host; `conf` is read where hccn_tool is missing."""
    view = View(table, name)
    on_host = _of_servers(view, conf) if view.servers else []  # 2.0 lists ranks and no servers
    return [*on_host, *_of_environment(view)]


def _of_servers(view: View, conf: str) -> list[Problem]:
    servers = [(names_of(s.entry, s.name), {device: ip for device, ip, _ in _addresses(view, s)}) for s in view.servers]
    ours = [view.servers[n] for n in host.servers_here(servers, conf)]
    if ours:
        return [problem for server in ours for problem in _of_addresses(view, server, conf)]
    text = tr("none of the {servers} servers is this host", servers=len(servers))
    return [
        Problem("host-server", "/" + view.list_key, text, tr("build this host's table with hccl_tools/hccl_tools.py"))
    ]


def _addresses(view: View, server: Server) -> list[tuple[int, str, int]]:
    """(device id, device_ip, position in the columns) of the devices that have both."""
    found = ((view.id_numbers[n], view.ips[n], n) for n in server.devices)
    return [(device, ip, n) for device, ip, n in found if device is not None and ip is not None]


def _of_addresses(view: View, server: Server, conf: str) -> Iterator[Problem]:
    devices = _addresses(view, server)
    try:
        found, source = hccn.addresses([device for device, _, _ in devices], conf) if devices else ({}, "")
    except hccn.AddressError as error:
        yield Problem("host-address", server.pointer, str(error), tr("without it the addresses cannot be compared"))
        return
    for device, ip, n in devices:
        if not is_one_of(found[device], ip):
            place = f"{view.place(n)}/{view.ip_key}"
            text = tr(
                "device_ip is {ip}, but device {device} has {found} ({source})",
                ip=shown(ip),
                device=device,
                found=found[device],
                source=source,
            )
            yield Problem(
                "host-address", place, text, tr('write "{found}", or build the table again', found=found[device])
            )


def _of_environment(view: View) -> Iterator[Problem]:
    """RANK_ID, RANK_SIZE and DEVICE_ID, where they are set."""
    ranks = _ranks(view)
    rank, size, device = (os.environ.get(name) for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID"))
    if not ranks:  # the legacy cloud format leaves the numbers to HCCL
        return
    if size and size != str(len(ranks)):
        text = tr("RANK_SIZE is {size} but the table has {ranks} ranks", size=shown(size), ranks=len(ranks))
        yield Problem("host-rank", "", text, tr("set RANK_SIZE={ranks}", ranks=len(ranks)))
    if not rank:
        return
    wanted, place = ranks.get(number(rank), (None, None))
    if place is None:
        text = tr("RANK_ID is {rank}, which is not a rank of the table", rank=shown(rank))
        yield Problem("host-rank", "", text, tr("set RANK_ID to 0 to {last}", last=len(ranks) - 1))
    elif device and wanted is not None and number(device) != (index := _index(wanted)):
        text = tr(
            "rank {rank} is on device {wanted}, but DEVICE_ID is {device}",
            rank=rank,
            wanted=wanted,
            device=shown(device),
        )
        remedy = tr("set DEVICE_ID={wanted}, the physical device", wanted=wanted)
        if index != wanted:
            remedy = tr(
                "set DEVICE_ID={index}, the number that processes here use for device {wanted}",
                index=index,
                wanted=wanted,
            )
        yield Problem("host-rank", place, text, remedy)


def _index(device: int) -> int:
    """DEVICE_ID of a rank on the device with this physical id, in this environment."""
    try:
        index = visible.npus().index(device)
    except Refusal:  # of the variable, which states nothing about the table
        index = None
    return device if index is None else index


def _ranks(view: View) -> dict[int | None, tuple[int | None, str]]:
    """{rank: (device id, pointer of its device_id)}."""
    if view.format == "v2.0":
        entries = objects(view.table, "rank_list")
        return {e.get("rank_id"): (e.get("device_id"), f"/rank_list/{n}/device_id") for n, e in entries}
    rows = zip(view.rank_numbers, view.id_numbers, range(len(view.devices)))
    return {rank: (device, view.place(row) + "/device_id") for rank, device, row in rows if rank is not None}
