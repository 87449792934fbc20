"""Writes a rank table in another format: version 1.0, 1.1, 1.2 or 2.0, a legacy format, or a list of hosts.

A format cannot hold everything that another format holds.  stderr lists what is left out.  The conversion
never guesses what is missing: it refuses, and names the option that can supply it.  --facts names another
file about the same job, a rank table or a list of hosts, to supply only what is missing.  The result has
passed the checks of validate_hccl.py.  It goes to stdout, or to the file of --output, whose path is
then printed.

  python hccl_tools/convert_hccl.py jobstart_hccl.json --to 1.0
  python hccl_tools/convert_hccl.py hccl_2s_16p.json --to hosts --output hosts
  python hccl_tools/convert_hccl.py hccl_2s_16p.json --to 1.2 --facts super_pods.json --output a3.json
  python hccl_tools/convert_hccl.py a950.json --to 1.0 --facts hosts --layer 1
  python hccl_tools/convert_hccl.py hosts --to 1.0 --devices "[0,8)" --facts hccl_2s_16p.json

Exit: 0 converted, 1 a table is bad or says too little, 2 usage, or a file that cannot be used.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence

from hccl_tools.build import output
from hccl_tools.check import verdict
from hccl_tools.commands import boundary
from hccl_tools.common.command_line import Parser
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import BAD, Refusal, misused
from hccl_tools.common.words import one_line, some
from hccl_tools.convert import filling, job, reading, writing
from hccl_tools.table import device_range, rank_table

PROGRAM = "convert_hccl.py"
_MOST_KEYS = 20  # in one message; a table may have any number of keys of its own
_MOST_LAYER = 7  # of version 2.0

say = functools.partial(boundary.say, PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(PROGRAM, tr(__doc__))
    add = parser.add_argument
    add("file", metavar="FILE", help=tr("a rank table, or a list of hosts with slots=N; - is standard input"))
    parser.option("to", required=True)
    parser.option("facts", action="append", default=[])
    parser.option("job")
    parser.option("layer")
    parser.option("devices", tr(" (of each host of a list of hosts)"))
    parser.option("generation", tr("; refuse what it cannot run (default: any)"))
    parser.option("output", tr(", which must not exist; its path is printed"))
    parser.option("force")
    options = parser.parse_args(argv)
    parser.refuse_empty(options)
    if options.layer is not None and whole_number(options.layer, 0, _MOST_LAYER) is None:
        parser.error(tr("--layer {text} is not a number from 0 to {most}", text=options.layer, most=_MOST_LAYER))
    return options


def run(options: argparse.Namespace) -> int:
    """Reads, converts, checks and writes; returns the exit code."""
    rank_table.refuse_twice([options.file, *options.facts])
    target = writing.TARGETS[options.to]
    what = job.words(target)
    try:
        found, lost = of_file(options.file)
        found = completed(found, options, target)
        found, more = job.only(found, target)
        result = writing.write(found, target, what)
        if not isinstance(result, str):
            check(result, what, options.generation)
    except Refusal as refusal:
        raise Refusal(refusal.status, *refusal.lines, tr(output.NOT_WRITTEN)) from refusal
    text = result if isinstance(result, str) else rank_table.dump(result)
    if lost + more:
        say(tr("left out, because {what} has no place for it: {keys}", what=what, keys=some(lost + more, _MOST_KEYS)))
    for line in remarks(found, target):
        say(line)
    if options.output is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        print(_save(text, options.output, options.force))
        if not isinstance(result, str) and (problem := verdict.path_problem(options.output)):
            say(problem.line(one_line(options.output)))
    return 0


def of_file(path: str) -> tuple[job.Job, list[str]]:
    """The Job of a file, and what no Job has of it; "-" is standard input.  Raises Refusal."""
    return reading.read(rank_table.bytes_of(path), rank_table.shown_name(path))


def completed(found: job.Job, options: argparse.Namespace, target: str) -> job.Job:
    """The job with what the options give.  Raises Refusal."""
    if options.devices is not None:
        if found.source != job.HOSTS:
            raise misused("--devices is for a list of hosts; this table has the devices of its ranks")
        found = filling.with_devices(found, device_range.parse(options.devices))
    for path in options.facts:
        found = filling.filled(found, filling.Facts(name=rank_table.shown_name(path), job=of_file(path)[0]), target)
    if options.layer is not None:
        found = filling.with_addresses(found, int(options.layer))
    if options.job is not None:
        found = found.replace(head={**found.head, **named(options.job, target)})
    return found


def named(name: str, target: str) -> JsonObject:
    """The keys of the table that have the job's name.  Raises Refusal."""
    keys = {"v1.1": "collective_id", "legacy_cloud": "group_name", "legacy_lab": "group_name"}
    if target not in keys:
        raise misused("--job is for 1.1, lab and cloud; the other formats have no name of the job")
    return {keys[target]: name}


def check(table: JsonObject, what: str, generation: str | None) -> None:
    """Prints the messages of validate_hccl.py about the result.  Raises Refusal if it is not valid."""
    problems = verdict.check(table, None if generation == "any" else generation)
    if bad := errors(problems):
        raise reading.refusal(BAD, bad, what)
    for problem in problems[: reading.MOST_PROBLEMS]:
        say(problem.line(what))


def remarks(found: job.Job, target: str) -> list[str]:
    """Notes about a result that lacks facts that its format may have."""
    lines = []
    if target == "v1.2" and "super_pod_list" not in found.head:
        lines.append(
            tr("no super_pod_list and no super_device_id: HCCL uses the network only; --facts FILE can give both")
        )
    if target in ("v1.0", "v1.2") and not all("device_ip" in device for device in found.devices):
        lines.append(tr("device_ip is missing, which HCCL takes on A2 and A3 only; --facts FILE can give it"))
    return lines


def _save(text: str, path: str, force: bool) -> str:
    """Writes `text` to `path`, whole or not at all; returns the absolute path.  Raises Refusal."""
    shown = one_line(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise misused("{path} is not a regular file; name another one with --output", path=shown)
    if not force and _has_other(path, text):
        raise misused(
            "{path} exists, and nothing was changed; name another file, or replace it with --force", path=shown
        )
    return output.write(text, path)


def _has_other(path: str, text: str) -> bool:
    """Whether a file is there that is not this text already."""
    try:
        with open(path, "rb") as file:
            return file.read(len(text.encode()) + 1) != text.encode()
    except FileNotFoundError:
        return False
    except OSError:  # it cannot be read, and it is there
        return True
