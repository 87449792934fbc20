"""The rank table of a launch: the one named, one in the current folder that fits, or a new one."""

from __future__ import annotations

import os

from hccl_tools.check import verdict
from hccl_tools.common import project
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import named, one_line
from hccl_tools.machine import hccn, host, programs
from hccl_tools.machine.programs import path_word
from hccl_tools.table import formats, rank_table
from tools.launch import trainer_command
from tools.launch.placement import comma
from tools.launch.request import Request

DEMO_CONF = project.path("configs", "demo_hccn.conf")


class LaunchTable(Record):
    path: str  # absolute
    ranks: list[tuple[int, int]]  # (rank, device) of those that this command starts, in rank order
    remarks: tuple[str, ...]  # how it came about, for the user
    text: str | None = None  # of a table that is not yet written to `path`
    setup: tuple[str, ...] = ()  # the command that writes such a table by hand, for --dry_run
    digest: str | None = None  # its SHA-256, where it must be the same on several hosts


def choose(request: Request, devices: list[int], run_dir: str) -> LaunchTable:
    """The table for a launch on `devices` of this one host.  Raises Refusal."""
    path = request.rank_table or os.environ.get("RANK_TABLE_FILE")
    if path:
        origin = "--rank_table" if request.rank_table else "RANK_TABLE_FILE (from your shell)"
        ranks, faults = examine(path, devices, request.chip)
        if faults:
            raise Refusal(REFUSED, *(f"{origin}: {fault}" for fault in faults))
        return LaunchTable(path=os.path.abspath(path), ranks=ranks, remarks=(f"rank table: {one_line(path)}",))
    unfit = []
    for path in sorted(name for name in os.listdir() if name.startswith("hccl_") and name.endswith(".json")):
        ranks, faults = examine(path, devices, request.chip)
        if not faults:
            remark = f"rank table: {one_line(path)}, found in this folder"
            return LaunchTable(path=os.path.abspath(path), ranks=ranks, remarks=(remark,))
        unfit.append(f"not used: {faults[0]}")
    return build(request, devices, run_dir, unfit)


# ---- a table that is there -------------------------------------------------------------------------


def examine(path: str, devices: list[int], generation: str | None) -> tuple[list[tuple[int, int]], list[str]]:
    """((rank, device) pairs, faults): whether the table at `path` is good, ours, and for `devices`."""
    shown = one_line(path)
    if os.path.exists(path) and not os.path.isfile(path):
        return [], [f"{shown} is not a regular file; every rank reads the table, so give it one that stays"]
    try:
        table, problems = verdict.check_file(path, generation)
    except rank_table.NotReadable as error:
        return [], [str(error)]
    faults = [problem.line(shown) for problem in errors(problems)] + path_faults(path)
    if faults:
        return [], faults
    if "server_list" not in table:
        name = formats.FORMATS[formats.detect(table)[0]]
        return [], [f"{shown} is a table of {name}; these scripts start ranks from tables with a server_list"]
    servers = rank_table.servers(table)
    if len(servers) != 1:
        return [], [f"{shown} is for {len(servers)} servers, this script starts ranks on one; build one for this host"]
    ranks = sorted((int(device.rank_id), int(device.device_id)) for device in servers[0].devices)
    found = sorted(device for _, device in ranks)
    if found != sorted(devices):
        others = f'choose them with --devices "{comma(found)}" or ' if len(found) == len(devices) else ""
        both = f"is for {named('device', found)}, this launch is on {named('device', devices)}"
        return [], [f"{shown} {both}; {others}name another table with --rank_table"]
    return ranks, host_faults(shown, servers[0])


def host_faults(shown: str, server: rank_table.Server) -> list[str]:
    """The table is for another host."""
    if host.is_this_host(server.server_id, server.device_ips()):
        return []
    return [
        f"{shown} is for server {one_line(server.server_id)}, which is not an address of this host; build this "
        "host's with hccl_tools/hccl_tools.py (in a container, mount the host's /etc/hccn.conf)"
    ]


def path_faults(path: str) -> list[str]:
    """validate_hccl.py only warns about this path: here HCCL will read it."""
    problem = verdict.path_problem(path)
    return [problem.text + "; move the file"] if problem else []


# ---- a new one -------------------------------------------------------------------------------------


def build(request: Request, devices: list[int], run_dir: str, unfit: list[str]) -> LaunchTable:
    """A table of this host for one run, kept in the run's folder; `unfit`: remarks about others.  Raises Refusal."""
    conf = request.hccn_conf or hccn.DEFAULT_CONF
    knows = request.hccn_conf or programs.on_path("hccn_tool") or os.path.exists(hccn.DEFAULT_CONF)
    demo = request.device_target == "CPU" and not knows
    if demo:
        conf = DEMO_CONF
    failed = "no rank table could be built"
    try:
        found, source = hccn.addresses(devices, conf)
    except hccn.AddressError as error:
        raise Refusal(REFUSED, f"{failed}: {error}") from error
    table = rank_table.build([(device, found[device]) for device in devices], host.LOOPBACK)
    path = os.path.join(run_dir, rank_table.file_name(devices, host.LOOPBACK))
    faults = [problem.line(failed) for problem in errors(verdict.check(table, request.chip))] + path_faults(path)
    if faults:
        raise Refusal(REFUSED, *faults)
    made_up = " (made up: CPU ranks do not use them)" if demo else ""
    remark = f"rank table: built for {named('device', devices)}, addresses from {one_line(source)}{made_up}"
    generator = (trainer_command.python(), project.path("hccl_tools", "hccl_tools.py"))
    chip = ("--generation", request.generation) if request.generation else ()
    options = ("--device_num", comma(devices), "--server_ip", host.LOOPBACK, "--hccn_conf", path_word(conf), *chip)
    return LaunchTable(
        path=path,
        ranks=list(enumerate(devices)),
        remarks=(*unfit, remark),
        text=rank_table.dump(table),
        setup=(*generator, *options, "--output", path),
    )
