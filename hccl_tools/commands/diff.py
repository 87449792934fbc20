"""Compares two rank tables, or lists of hosts: what moved, what changed, and whether they mean the same.

The comparison covers servers that were added, removed or renamed, ranks with other numbers or on other
devices, addresses, and every other key, in any format.  It ignores the order of servers, devices and keys,
and the spelling of addresses.  Consecutive ranks share a line.  A is the old table, B the new one; one of
them may be -, standard input.

Ranks are compared by server and device.  A list of hosts has no devices, and version 2.0 no servers: two
tables of that version are compared by inner network and local_id; one of them and another table by rank
alone.  --facts names a file with the places of the ranks: a list of hosts with slots, or a table.

  python hccl_tools/diff_hccl.py old.json new.json
  python hccl_tools/diff_hccl.py old.json a950.json --facts hosts
  python hccl_tools/diff_hccl.py --json old.json new.json
  kubectl exec POD -- cat /user/serverid/devindex/config/hccl.json | python hccl_tools/diff_hccl.py old.json -

Exit: 0 the tables mean the same, 1 they differ, 2 usage, or a file that cannot be compared.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Sequence

from hccl_tools.commands import boundary
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD
from hccl_tools.compare import changes, side, wording
from hccl_tools.convert import filling, reading
from hccl_tools.table import rank_table

PROGRAM = "diff_hccl.py"

say = functools.partial(boundary.say, PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(PROGRAM, tr(__doc__))
    add = parser.add_argument
    add("a", metavar="A", help=tr("a rank table; - is standard input"))
    add("b", metavar="B", help=tr("the rank table to compare it with"))
    parser.option("facts", tr(": here the servers and devices of its ranks"), action="append", default=[])
    parser.json()
    parser.option("all")
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> int:
    """Reads both, compares and prints; returns the exit code."""
    rank_table.refuse_twice([options.a, options.b, *options.facts])
    a, b = (side.of(rank_table.bytes_of(path), rank_table.shown_name(path)) for path in (options.a, options.b))
    for path in options.facts:
        known = filling.Facts(
            name=rank_table.shown_name(path),
            job=reading.read(rank_table.bytes_of(path), rank_table.shown_name(path))[0],
        )
        a, b = (side.with_places(each, known) for each in (a, b))
    for each in (a, b):
        if each.warning:
            say(f"{each.name}: {each.warning}")
    found = changes.compare(a, b)
    if options.json:
        print(json.dumps(wording.document(a, b, found), indent=2))
    else:
        boundary.escape_missing_letters()
        print("\n".join(wording.lines(a, b, found, options.all)))
    return BAD if found.changes else 0
