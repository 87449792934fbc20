#!/usr/bin/env python3
"""Checks rank tables: structure by the JSON Schema, then the rules that HCCL has on top of it.

One line a problem on stdout: file, JSON pointer, what is wrong, how to mend it, and its code.

  python hccl_tools/validate_hccl.py hccl_8p_01234567_127.0.0.1.json
  python hccl_tools/validate_hccl.py --generation 910A *.json

Exit: 0 all tables are good, 1 at least one is bad, 2 usage, or a file that cannot be read.
"""

import argparse
import os
import sys

if not __package__:  # run as a file: its own folder would hide the package of the same name
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools import check, rank_table, rules
from hccl_tools.problem import one_line

PROGRAM = "validate_hccl.py"


def main(argv=None):
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="rank tables")
    parser.add_argument("--generation", choices=rules.GENERATIONS, help="check the rules of this generation too")
    options = parser.parse_args(argv)
    try:
        code = max(verdict(path, options.generation) for path in options.files)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
    except ImportError as error:
        print(f"{PROGRAM}: a table is not well-formed, and to say why needs jsonschema: {error}", file=sys.stderr)
        return 2


def verdict(path, generation):
    """Prints what there is to say about one file; returns its exit code."""
    shown = one_line(path)
    try:
        table, problems = check.check_file(path, generation)
    except rank_table.NotReadable as error:
        print(f"{PROGRAM}: {shown} {error}", file=sys.stderr)
        return 2
    for problem in problems:
        print(problem.line(shown))
    rules_used = f"rules of {generation}" if generation else "rules of every generation"
    if problems:
        print(f"{shown}: {len(problems)} problem{'s' if len(problems) > 1 else ''} ({rules_used})")
        return 1
    servers = rank_table.servers(table)
    ranks = sum(len(server.devices) for server in servers)
    print(f"{shown}: good: version 1.0, servers: {len(servers)}, ranks: {ranks} ({rules_used})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
