"""Builds the rank table of this host: which device carries which rank, at which address.

The addresses come from hccn_tool, else from hccn.conf.  The table is written to the current folder
as hccl_<N>p_<devices>_<server>.json, whole or not at all, and its path is printed on stdout.

  python hccl_tools/hccl_tools.py --device_num "[0,8)"
  python hccl_tools/hccl_tools.py --device_num "[4,8)" --server_ip 10.0.0.1
  python hccl_tools/hccl_tools.py --device_num "0,1,4,5" --stdout

In a container that got devices 4 to 7 of its host, positions count within the visible ones:

  python hccl_tools/hccl_tools.py --visible_devices 4,5,6,7 --device_num "[0,4)"

An A3 host has 16 devices.  In a super pod its table is of version 1.2, with the super_device_id that
npu-smi tells; elsewhere it is of version 1.0:

  python hccl_tools/hccl_tools.py --generation A3

For a whole cluster, with a hostfile of Open MPI; mpirun and this project must be on every host, at
the same place, and ssh must reach the hosts without a password:

  python hccl_tools/hccl_tools.py --hostfile hosts --generation A2

To look at a table (`show --help` has more):

  python hccl_tools/hccl_tools.py show hccl_8p_01234567_10.0.0.1.json

Exit: 0 the table is written, 1 no good table can be built, 2 usage, or a file that cannot be used.
"""

import argparse
import os
import socket
import sys

from hccl_tools.build import merging, output, super_pod
from hccl_tools.check import rules, verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line
from hccl_tools.hosts import ask, hostfile
from hccl_tools.machine import hccn, host
from hccl_tools.table import device_range, rank_table

PROGRAM = "hccl_tools.py"


class UsageError(Exception):
    """The command line asks for something that cannot be; one line says what."""


class BadTable(Exception):
    """What the host has makes no good table; `lines` says why, a line a problem."""

    def __init__(self, lines):
        super().__init__("\n".join(lines))
        self.lines = lines


def main(argv=None):
    """Runs the command; returns its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["show"]:
        from hccl_tools.commands import show

        return show.main(argv[1:], f"{PROGRAM} show")
    options = parse_arguments(argv)
    try:
        code = run(options)
        sys.stdout.flush()
        return code
    except (device_range.RangeError, UsageError, hostfile.HostfileError, output.NotOurs) as error:
        say(error)
        return 2
    except BadTable as error:
        for line in error.lines:
            say(line)
        return 1
    except (ask.ClusterError, merging.Refused) as error:
        for line in error.lines:
            say(line)
        say("no table was written")
        return 1
    except (hccn.AddressError, super_pod.SuperPodError) as error:
        say(error)
        return 1
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
    add = parser.add_argument
    add(
        "--device_num",
        "--device-num",
        metavar="RANGE",
        help='devices, as "[4,8)" or "0,1,4,5" (default: "[0,8)", on A3 "[0,16)", or all of --visible_devices)',
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
    add(
        "--generation",
        choices=(*rules.GENERATIONS, "any"),
        help="refuse what this chip cannot run; A3: ask for the super pod (default: this host's, if it has NPUs)",
    )
    add("--hostfile", metavar="FILE", help="ask all hosts of this file (Open MPI's syntax) and merge their tables")
    # what --hostfile starts on every host: the table goes to stdout in a frame, see cluster.py
    add("--answer", metavar="NONCE", help=argparse.SUPPRESS)
    add("--hosts", nargs="+", default=(), help=argparse.SUPPRESS)
    add("--output", metavar="FILE", help="write to FILE instead of the default name in the current folder")
    add("--stdout", action="store_true", help="print the table and write no file")
    options = parser.parse_args(argv)
    for name, value in vars(options).items():
        if value == "":
            parser.error(f"--{name} is empty")
    options.chip, options.origin = host.chosen_generation(options.generation)
    if options.stdout and options.output:
        parser.error("--stdout writes no file, so it does not go with --output")
    if options.hostfile and options.server_ip:
        parser.error("--server_ip is for one host; with --hostfile each has its own, from the file or from its name")
    return options


def run(options):
    """Builds, checks and writes the table of `options`; returns the exit code."""
    if options.answer:
        return answer(options)
    if options.hostfile:
        return run_cluster(options)
    table = build(options, say)
    server = table["server_list"][0]
    devices = [device["device_id"] for device in server["device"]]
    if server["server_id"] == host.LOOPBACK and not options.server_ip:
        say("server 127.0.0.1 is right for one server; for several give each its own: --server_ip IP")
    if options.stdout:
        print(rank_table.dump(table))
    else:
        print(output.save(table, options.output or rank_table.file_name(devices, server["server_id"]), say))
    return 0


def run_cluster(options):
    """Builds and writes the table of all hosts of the hostfile; returns the exit code."""
    chosen_devices(options)  # a mistake on the command line is told once, not by every host
    table = ask.collect(options.hostfile, forwarded(options), options.chip, say)
    if options.stdout:
        print(rank_table.dump(table))
    else:
        print(output.save(table, options.output or merging.file_name(table), say))
    return 0


def forwarded(options):
    """The options that every host of a cluster gets, as words."""
    conf = None if options.hccn_conf == hccn.DEFAULT_CONF else os.path.abspath(options.hccn_conf)
    pairs = {
        "--device_num": options.device_num,
        "--visible_devices": options.visible_devices,
        "--hccn_conf": conf,
        "--generation": options.generation,
    }
    return [f"{name}={value}" for name, value in pairs.items() if value is not None]


def answer(options):
    """Prints this host's table, or why there is none, as a frame; the exit code is 0 either way.

    mpirun ends all others when one fails, and then only the first to fail would be heard.
    """
    entry, said, table = ask.own_entry(options.hosts), [], None
    if entry and rules.family(entry):
        options.server_ip = entry
    try:
        table = build(options, said.append)
    except BadTable as error:
        said = error.lines
    except (device_range.RangeError, UsageError, hccn.AddressError, super_pod.SuperPodError) as error:
        said = [str(error)]
    answered = ask.Answer(entry, socket.gethostname(), table, said)
    os.write(1, ask.frame(answered, options.answer))  # at once: see cluster.py
    return 0


def build(options, tell):
    """The checked table of this host; `tell` is called with what is worth saying about it.

    Raises UsageError, RangeError, AddressError, SuperPodError and BadTable.
    """
    devices = chosen_devices(options)
    server_id = options.server_ip or host.address()
    if rules.family(server_id) is None:
        raise UsageError(
            f"--server_ip {one_line(server_id)} is not an IPv4 or IPv6 address; write one such as 10.0.0.1"
        )
    pod, why = super_pod.of_devices(devices) if options.chip == "A3" else (None, None)
    found, source = hccn.addresses(devices, options.hccn_conf, options.chip in ("A2", "A3"))
    table = rank_table.build([(device, found[device]) for device in devices], server_id)
    if pod:
        table = super_pod.add(table, pod)
    problems = verdict.check(table, options.chip)
    if errors(problems):
        raise BadTable([problem.line("no table was written") for problem in problems])
    for problem in problems:
        tell(problem.line("the table"))
    named = ",".join(map(str, devices))
    tell(f"{len(devices)} ranks on devices {named}, addresses from {source}, server {server_id} ({options.origin})")
    if pod:
        tell(f"version 1.2: super pod {pod.super_pod_id}")
    elif why:
        tell(f"version 1.0, which HCCL takes outside of super pods only: {why}")
    return table


def chosen_devices(options):
    """The physical device ids of the ranks, in rank order."""
    if not options.visible_devices:
        every = f"[0,{super_pod.DEVICES})" if options.chip == "A3" else "[0,8)"
        return checked(device_range.parse(options.device_num or every), options.chip)
    visible = device_range.parse(options.visible_devices)
    positions = device_range.parse(options.device_num) if options.device_num else range(len(visible))
    if max(positions) >= len(visible):
        raise UsageError(
            f'--device_num "{options.device_num}" asks for position {max(positions)}, but --visible_devices '
            f'{options.visible_devices} has positions 0 to {len(visible) - 1}; write --device_num "[0,{len(visible)})"'
        )
    return checked([visible[position] for position in positions], options.chip)


def checked(devices, generation):
    """`devices`, once the generation can run them as one job."""
    problem = rules.group_problem_910a(devices) if generation == "910A" else None
    if problem:
        raise UsageError("{}; {}".format(*problem))
    return list(devices)


def say(message):
    """One line of the conversation, on stderr."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)
