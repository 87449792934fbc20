#!/usr/bin/env python3
"""Builds the rank table of this host: which device carries which rank, at which address.

The addresses come from hccn_tool, else from hccn.conf.  The table is written to the current folder
as hccl_<N>p_<devices>_<server>.json, whole or not at all, and its path is printed on stdout.

  python hccl_tools/hccl_tools.py --device_num "[0,8)"
  python hccl_tools/hccl_tools.py --device_num "[4,8)" --server_ip 10.0.0.1
  python hccl_tools/hccl_tools.py --device_num "0,1,4,5" --stdout

In a container that got devices 4 to 7 of its host, positions count within the visible ones:

  python hccl_tools/hccl_tools.py --visible_devices 4,5,6,7 --device_num "[0,4)"

Exit: 0 the table is written, 1 no good table can be built, 2 usage, or a file that cannot be used.
"""

import argparse
import os
import sys

if not __package__:  # run as a file: its own folder would hide the package of the same name
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools import check, device_range, hccn, host, rank_table, rules
from hccl_tools.problem import errors, one_line

PROGRAM = "hccl_tools.py"


class UsageError(Exception):
    """The command line asks for something that cannot be; one line says what."""


def main(argv=None):
    """Runs the command; returns its exit code."""
    options = parse_arguments(argv)
    try:
        code = run(options)
        sys.stdout.flush()
        return code
    except (device_range.RangeError, UsageError) as error:
        say(error)
        return 2
    except hccn.AddressError as error:
        say(error)
        return 1
    except OSError as error:
        where = error.filename or options.output or "to stdout"
        say(f"cannot write {one_line(where)}: {error.strerror}; nothing was changed")
        _drop_stdout()
        return 2


def parse_arguments(argv):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--device_num",
        "--device-num",
        metavar="RANGE",
        help='devices, as "[4,8)" or "0,1,4,5" (default: "[0,8)", or all of --visible_devices)',
    )
    add(
        "--visible_devices",
        "--visible-devices",
        metavar="LIST",
        help="physical devices that this container sees, in order; RANGE then counts positions in this list",
    )
    add(
        "--server_ip",
        "--server-ip",
        metavar="IP",
        help="this host's address in the table (default: the address "
        "of the host's name; 127.0.0.1 is enough for one server, several need an address each)",
    )
    add(
        "--hccn_conf",
        "--hccn-conf",
        metavar="FILE",
        default=hccn.DEFAULT_CONF,
        help="addresses of the devices where hccn_tool is not on PATH (default: %(default)s)",
    )
    add("--generation", choices=rules.GENERATIONS, help="refuse what this chip generation cannot run")
    add("--output", metavar="FILE", help="write to FILE instead of the default name in the current folder")
    add("--stdout", action="store_true", help="print the table and write no file")
    options = parser.parse_args(argv)
    for name, value in vars(options).items():
        if value == "":
            parser.error(f"--{name} is empty")
    if options.stdout and options.output:
        parser.error("--stdout writes no file, so it does not go with --output")
    return options


def run(options):
    """Builds, checks and writes the table of `options`; returns the exit code."""
    devices = chosen_devices(options)
    server_id = options.server_ip or host.address()
    if rules.family(server_id) is None:
        raise UsageError(
            f"--server_ip {one_line(server_id)} is not an IPv4 or IPv6 address; write one such as 10.0.0.1"
        )
    found, source = hccn.addresses(devices, options.hccn_conf, options.generation in ("A2", "A3"))
    table = rank_table.build([(device, found[device]) for device in devices], server_id)
    problems = check.check(table, options.generation)
    bad = errors(problems)
    for problem in problems:
        say(problem.line("no table was written" if bad else "the table"))
    if bad:
        return 1
    summary = (
        f"{len(devices)} ranks on devices {','.join(map(str, devices))}, addresses from {source}, server {server_id}"
    )
    say(summary)
    if server_id == host.LOOPBACK and not options.server_ip:
        say("server 127.0.0.1 is right for one server; for several give each its own: --server_ip IP")
    if options.stdout:
        print(rank_table.dump(table))
    else:
        print(save(table, options.output or rank_table.file_name(devices, server_id)))
    return 0


def chosen_devices(options):
    """The physical device ids of the ranks, in rank order."""
    if not options.visible_devices:
        return checked(device_range.parse(options.device_num or "[0,8)"), options.generation)
    visible = device_range.parse(options.visible_devices)
    positions = device_range.parse(options.device_num) if options.device_num else range(len(visible))
    if max(positions) >= len(visible):
        raise UsageError(
            f'--device_num "{options.device_num}" asks for position {max(positions)}, but --visible_devices '
            f'{options.visible_devices} has positions 0 to {len(visible) - 1}; write --device_num "[0,{len(visible)})"'
        )
    return checked([visible[position] for position in positions], options.generation)


def checked(devices, generation):
    """`devices`, once the generation can run them as one job."""
    problem = rules.group_problem_910a(devices) if generation == "910A" else None
    if problem:
        raise UsageError("{}; {}".format(*problem))
    return list(devices)


def _drop_stdout():
    # What is buffered cannot be written; the interpreter would try again at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def save(table, path):
    """Writes the table to `path`; returns the absolute path.  A file that is no rank table stays."""
    text = rank_table.dump(table)
    if os.path.exists(path):
        try:
            old, _ = rank_table.read(path)
        except rank_table.NotReadable as error:
            raise UsageError(
                f"{one_line(path)} {error}; nothing was changed, name another file with --output"
            ) from error
        if not isinstance(old, dict) or "server_list" not in old:
            raise UsageError(f"{one_line(path)} is there and is not a rank table; name another file with --output")
        if old != table:
            say(f"{one_line(path)} held another table; it is replaced")
    rank_table.write(text, path)
    return os.path.abspath(path)


def say(message):
    """One line of the conversation, on stderr."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
