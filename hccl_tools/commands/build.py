"""Builds the rank table of this host: which device carries which rank, at which address.

The addresses come from hccn_tool, else from hccn.conf.  The table is written to the current folder
as hccl_<N>p_<devices>_<server>.json, whole or not at all, and its path is printed on stdout.

  python hccl_tools/hccl_tools.py --devices "[0,8)"
  python hccl_tools/hccl_tools.py --devices "[4,8)" --server_ip 10.0.0.1
  python hccl_tools/hccl_tools.py --devices "0,1,4,5" --stdout

In a container that got devices 4 to 7 of its host, positions count within the visible ones:

  python hccl_tools/hccl_tools.py --visible_devices 4,5,6,7 --devices "[0,4)"

An A3 host has 16 devices.  In a super pod its table has version 1.2, with the super_device_id that
npu-smi reports; elsewhere it has version 1.0:

  python hccl_tools/hccl_tools.py --generation A3

The table of a 950 host has version 2.0.  It is built from the host's own /etc/hccl_rootinfo.json:

  python hccl_tools/hccl_tools.py --generation 950 --devices "[0,4)"

For a whole cluster, use a hostfile of Open MPI.  Every host needs the same Python at the same path, and
the same version of this project, in that Python or at the same path.  ssh must work without a password:

  python hccl_tools/hccl_tools.py --hostfile hosts --generation A2

To look at a table (`show --help` has more):

  python hccl_tools/hccl_tools.py show hccl_8p_01234567_10.0.0.1.json

Exit: 0 the table is written, 1 no good table can be built, 2 usage, or a file that cannot be used.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence

from hccl_tools.build import output, rank_lists, this_host
from hccl_tools.commands import arguments, boundary
from hccl_tools.common.command_line import Parser
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal, misused
from hccl_tools.machine import hccn, host, visible
from hccl_tools.table import rank_table
from hccl_tools.table.address import family

PROGRAM = "hccl_tools.py"

say = functools.partial(boundary.say, PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["show"]:
        from hccl_tools.commands import show

        return show.main(argv[1:], f"{PROGRAM} show")
    options = parse_arguments(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(PROGRAM, tr(__doc__))
    parser.option(
        "devices",
        tr(' (default: all that are visible here, else "[0,8)", on A3 "[0,16)", or all of --visible_devices)'),
    )
    parser.option("visible_devices")
    parser.option(
        "server_ip",
        tr(
            " (default: the address of the host's name; 127.0.0.1 is enough for one server, several need"
            " an address each)"
        ),
    )
    arguments.add_hccn_conf(parser)
    parser.option("root_info", default=rank_lists.ROOT_INFO)
    arguments.add_generation(parser, tr("; for A3, the build also queries the super pod"))
    parser.option("hostfile", tr("; the build queries all of them and merges their tables"))
    arguments.add_answer(parser)
    arguments.add_output(parser, "hccl_<N>p_<devices>_<server>.json")
    options = arguments.parse_with_output(parser, argv)
    if options.hostfile and options.server_ip:
        parser.error(
            tr("--server_ip is for one host; with --hostfile, each host's address comes from the file or from its name")
        )
    return options


def run(options: argparse.Namespace) -> int:
    """Builds, checks and writes the table; returns the exit code."""
    chip, origin = host.chosen_generation(options.generation)
    wanted = this_host.Wanted(
        devices=options.devices,
        visible_devices=options.visible_devices,
        server_ip=options.server_ip,
        hccn_conf=options.hccn_conf,
        root_info=options.root_info,
        chip=chip,
        origin=origin,
    )
    if options.answer:
        return answer(wanted)
    if chip == rank_lists.CHIP and options.server_ip:
        raise misused("--server_ip: the table of a 950 host does not contain the host's address; leave the option out")
    if not options.hostfile or chip != rank_lists.CHIP or options.devices or options.visible_devices:
        this_host.chosen_devices(wanted)  # a mistake on the command line is one message, not one from every host
    for line in this_host.remarks(wanted):
        say(line)
    if options.hostfile:
        table, name = of_all_hosts(options, wanted)
    else:
        table, name = of_this_host(wanted)
    output.deliver(table, options, name, {"generation": chip}, say)
    return 0


def of_this_host(wanted: this_host.Wanted) -> tuple[JsonObject, str]:
    """The table of this host, and the name of its file.  Raises Refusal."""
    table = this_host.build(wanted, say)
    if "rank_list" in table:
        return table, rank_lists.file_name_of_950(table)
    server = table["server_list"][0]
    if server["server_id"] == host.LOOPBACK and not wanted.server_ip:
        say(tr("server 127.0.0.1 is right for one server; for several give each its own: --server_ip IP"))
    return table, rank_table.file_name([device["device_id"] for device in server["device"]], server["server_id"])


def of_all_hosts(options: argparse.Namespace, wanted: this_host.Wanted) -> tuple[JsonObject, str]:
    """The table of all hosts of the hostfile, and the name of its file.  Raises Refusal."""
    from hccl_tools.build import merging
    from hccl_tools.hosts import ask, hostfile, ssh

    try:
        asker = ask.Asker(logins=hostfile.logins(options.hostfile), agent=ssh.agent(options.ssh), news=say)
        table = ask.collect(asker, forwarded(options), wanted.chip, say)
    except (ask.ClusterError, merging.Refused) as refusal:
        raise Refusal(refusal.status, *refusal.lines, tr(output.NOT_WRITTEN)) from refusal
    return table, merging.file_name(table)


def forwarded(options: argparse.Namespace) -> list[str]:
    """The options that every host of a cluster gets."""
    conf = None if options.hccn_conf == hccn.DEFAULT_CONF else os.path.abspath(options.hccn_conf)
    described = None if options.root_info == rank_lists.ROOT_INFO else os.path.abspath(options.root_info)
    devices = options.devices
    if devices is None and options.visible_devices is None and (shown := visible.npus()).limit:
        devices = ",".join(map(str, shown.ids or ()))  # they get this list, and not our variable
    pairs = {
        "--devices": devices,
        "--visible_devices": options.visible_devices,
        "--hccn_conf": conf,
        "--root_info": described,
        "--generation": options.generation,
    }
    return [f"{name}={value}" for name, value in pairs.items() if value is not None]


def answer(wanted: this_host.Wanted) -> int:
    """Answers the host that asks with this host's table."""
    from hccl_tools.hosts import answering

    def build(name: str, _: object, tell: Callable[[str], None]) -> JsonObject:
        own = name if family(name) else wanted.server_ip
        return this_host.build(wanted.replace(server_ip=own), tell)

    return answering.answer(build)
