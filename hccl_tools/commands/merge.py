"""Merges the rank tables of single servers into the one table of their cluster.

Servers are sorted by the dictionary order of server_id, as MindSpore requires, and the ranks are
numbered 0 to N-1 in that order; everything else stays as it is in the tables.  The result is
written to the current folder as hccl_<servers>s_<ranks>p.json, whole or not at all, and its path is
printed on stdout.  Give the same file to every host.

  python hccl_tools/merge_hccl.py hccl_8p_*.json
  python hccl_tools/merge_hccl.py 10.0.0.1.json 10.0.0.2.json --output cluster.json
  python hccl_tools/merge_hccl.py hccl_2s_16p.json hccl_8p_01234567_10.0.0.3.json --stdout

Exit: 0 the table is written, 1 these tables do not make a good one, 2 usage, or a file that cannot
be used.
"""

import argparse
import os
import sys

from hccl_tools.build import merging, output
from hccl_tools.check import rules
from hccl_tools.common.words import one_line
from hccl_tools.machine import host, interpreter
from hccl_tools.table import rank_table

PROGRAM = "merge_hccl.py"


class UsageError(Exception):
    """The command line asks for something that cannot be; one line says what."""


def main(argv=None):
    """Runs the command; returns its exit code."""
    options = parse_arguments(argv)
    try:
        code = run(options)
        sys.stdout.flush()
        return code
    except merging.Refused as error:
        for line in error.lines:
            say(line)
        say(f"no table was written ({len(error.lines)} problem{'s' if len(error.lines) > 1 else ''})")
        return 1
    except (UsageError, output.NotOurs) as error:
        say(error)
        return 2
    except ImportError:
        say(f"a table is not well-formed, and to say why needs jsonschema; {interpreter.remedy_for('jsonschema')}")
        return 2
    except OSError as error:
        where = error.filename or options.output or "to stdout"
        say(f"cannot write {one_line(where)}: {error.strerror}; nothing was changed")
        output.drop_stdout()
        return 2


def parse_arguments(argv):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="rank tables, of one server or several each")
    parser.add_argument(
        "--generation",
        choices=(*rules.GENERATIONS, "any"),
        help="refuse what this chip generation cannot run (default: that of this host's NPUs if it has some, else any)",
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write to FILE instead of hccl_<servers>s_<ranks>p.json in the current folder"
    )
    parser.add_argument("--stdout", action="store_true", help="print the table and write no file")
    options = parser.parse_args(argv)
    if options.output == "":
        parser.error("--output is empty")
    if options.stdout and options.output:
        parser.error("--stdout writes no file, so it does not go with --output")
    return options


def run(options):
    """Reads, merges and writes; returns the exit code."""
    generation, origin = host.chosen_generation(options.generation)
    table = merging.merge(read_all(options.files), generation)
    servers = table["server_list"]
    ranks = sum(len(server["device"]) for server in servers)
    first, last = servers[0]["server_id"], servers[-1]["server_id"]
    said = f"servers: {len(servers)} from {first} to {last}, ranks: {ranks} ({origin})"
    path = options.output or merging.file_name(table)
    if not options.stdout:
        refuse_input(path, options.files, table)
    say(said)
    print(rank_table.dump(table) if options.stdout else output.save(table, path, say))
    return 0


def read_all(files):
    """The tables of `files` as merging.Named.  Raises UsageError and merging.Refused."""
    inputs, lines = [], []
    for path in files:
        try:
            table, problems = rank_table.read(path)
        except rank_table.NotReadable as error:
            raise UsageError(f"{error}; no table was written") from error
        lines += [problem.line(one_line(path)) for problem in problems]
        inputs.append(merging.Named(path, table))
    if lines:
        good = [item for item in inputs if item.table is not None]
        raise merging.Refused([*lines, *(line for item in good for line in merging.faults(item))])
    return inputs


def refuse_input(path, files, table):
    """Raises UsageError if writing `table` to `path` would change one of the inputs."""
    if not os.path.exists(path) or rank_table.read(path)[0] == table:
        return
    target = os.path.realpath(path)
    if any(os.path.realpath(name) == target for name in files):
        raise UsageError(f"{one_line(path)} is one of the tables to merge; name another file with --output")


def say(message):
    """One line of the conversation, on stderr."""
    print(f"{PROGRAM}: {one_line(message)}", file=sys.stderr)
