"""The rank table of a launch: the one named, one in the current folder that fits, or a new one."""

import os
import sys

from hccl_tools.check import verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line
from hccl_tools.machine import hccn, host, programs
from hccl_tools.table import formats, rank_table

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
DEMO_CONF = os.path.join(PROJECT, "configs", "demo_hccn.conf")


class NoTable(Exception):
    """No table fits and none can be built: one line a reason."""

    def __init__(self, lines):
        super().__init__("\n".join(lines))
        self.lines = lines


class Choice:
    """The table: its absolute path, the (rank, device) pairs of this host, and how it came about.

    text:    of a table that is still to be written to `path`; None when the file is there.
    setup:   the command that writes such a table by hand, for --dry_run.
    remarks: lines for the user.
    """

    def __init__(self, path, ranks, remarks, text=None, setup=()):
        self.path = path
        self.ranks = ranks
        self.remarks = remarks
        self.text = text
        self.setup = setup


def choose(asked, target, devices, run_dir):
    """The Choice for a launch on `devices` of this one host.  Raises NoTable."""
    named = asked.get("rank_table") or os.environ.get("RANK_TABLE_FILE")
    if named:
        origin = "--rank_table" if "rank_table" in asked else "RANK_TABLE_FILE (from your shell)"
        ranks, faults = examine(named, devices, asked["generation"])
        if faults:
            lines = [f"{origin}: {fault}" for fault in faults]
            raise NoTable(lines)
        return Choice(os.path.abspath(named), ranks, [f"rank table: {one_line(named)}"])
    remarks = []
    for path in sorted(name for name in os.listdir() if name.startswith("hccl_") and name.endswith(".json")):
        ranks, faults = examine(path, devices, asked["generation"])
        if not faults:
            return Choice(os.path.abspath(path), ranks, [f"rank table: {one_line(path)}, found in this folder"])
        remarks.append(f"not used: {faults[0]}")
    return build(asked, target, devices, run_dir, remarks)


# ---- a table that is there -------------------------------------------------------------------------


def examine(path, devices, generation):
    """((rank, device) pairs, faults): whether the table at `path` is good, ours, and for `devices`."""
    shown = one_line(path)
    if os.path.exists(path) and not os.path.isfile(path):
        return [], [f"{shown} is no regular file; every rank reads the table, so give it one that stays"]
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
        others = f'choose them with --devices "{_listed(found)}" or ' if len(found) == len(devices) else ""
        return [], [
            f"{shown} is for device {_listed(found)}, this launch is on {_listed(devices)}; {others}name another "
            "table with --rank_table"
        ]
    return ranks, host_faults(shown, servers[0])


def host_faults(shown, server):
    """The table names another host, by its address and by those of its devices."""
    if host.owns(server.server_id):
        return []
    wanted = {int(device.device_id): device.device_ip for device in server.devices}
    try:
        # In a container the host's address is not ours; the devices' addresses tell it just as well.
        if hccn.addresses(list(wanted), hccn.DEFAULT_CONF)[0] == wanted:
            return []
    except hccn.AddressError:
        pass  # nothing to compare with: the address is all there is
    return [
        f"{shown} is for server {one_line(server.server_id)}, which is not an address of this host; build this "
        "host's with hccl_tools/hccl_tools.py (in a container, mount the host's /etc/hccn.conf)"
    ]


def path_faults(path):
    """A path that validate_hccl.py only warns of: here HCCL is about to read it."""
    problem = verdict.path_problem(path)
    return [problem.text + "; move the file"] if problem else []


# ---- a new one -------------------------------------------------------------------------------------


def build(asked, target, devices, run_dir, remarks):
    """A table of this host for one run, kept in the run's folder."""
    conf = asked.get("hccn_conf", hccn.DEFAULT_CONF)
    demo = target == "CPU" and "hccn_conf" not in asked and not _knows_addresses()
    if demo:
        conf = DEMO_CONF
    try:
        found, source = hccn.addresses(devices, conf)
    except hccn.AddressError as error:
        raise NoTable([f"no rank table could be built: {error}"]) from error
    table = rank_table.build([(device, found[device]) for device in devices], host.LOOPBACK)
    path = os.path.join(run_dir, rank_table.file_name(devices, host.LOOPBACK))
    faults = [
        problem.line("no rank table could be built") for problem in errors(verdict.check(table, asked["generation"]))
    ]
    faults += path_faults(path)
    if faults:
        raise NoTable(faults)
    made_up = " (made up: CPU ranks do not use them)" if demo else ""
    remarks = [*remarks, f"rank table: built for device {_listed(devices)}, addresses from {one_line(source)}{made_up}"]
    setup = [
        os.environ.get("PYTHON") or sys.executable,
        os.path.join(PROJECT, "hccl_tools", "hccl_tools.py"),
        "--device_num",
        _listed(devices),
        "--server_ip",
        host.LOOPBACK,
        "--hccn_conf",
        conf,
        "--output",
        path,
    ]
    return Choice(path, list(enumerate(devices)), remarks, rank_table.dump(table), setup)


def _knows_addresses():
    return programs.on_path("hccn_tool") or os.path.exists(hccn.DEFAULT_CONF)


def _listed(devices):
    return ",".join(map(str, devices))
