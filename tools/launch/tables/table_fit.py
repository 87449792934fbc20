"""Checks whether a rank table fits a launch on devices of this one host."""

from __future__ import annotations

import os

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.words import count, named, one_line
from hccl_tools.machine import host
from hccl_tools.machine.programs import path_word
from hccl_tools.table import formats, rank_table
from tools.launch.engines.placement import comma
from tools.launch.programs import trainer_command


class Fit(Record):
    """The known facts of one table: its ranks, or why it is not taken."""

    ranks: list[tuple[int, int]] = []  # (rank, device) in rank order
    text: str | None = None  # the table as version 1.0, where the file is of a legacy format
    remark: str = ""  # what the user should know of a table that is taken
    device_ips: dict[int, str | None] = {}
    brief: str = ""  # why not, in few words: for one table among several
    faults: list[str] = []  # why not, one line per fault: for a table that the user named


def examine(path: str, devices: list[int], generation: str | None, is_named: bool = False) -> Fit:
    """Checks whether the table at `path` is valid, ours, and for `devices`.

    is_named: the user names it, so it is taken where nothing can tell whose it is.
    """
    shown = one_line(path)
    if os.path.exists(path) and not os.path.isfile(path):
        text = tr("{path} is not a regular file; every rank reads the table, so give it one that stays", path=shown)
        return Fit(brief=tr("no regular file"), faults=[text])
    try:
        table, problems = verdict.check_file(path, generation)
    except rank_table.NotReadable as error:
        return Fit(brief=tr("cannot be read"), faults=[str(error)])
    if table is None:
        return Fit(brief=tr("not JSON"), faults=[problem.line(shown) for problem in problems])
    faults = [problem.line(shown) for problem in errors(problems)]
    if faults or path_faults(path):
        return Fit(brief=count(len(faults), "mistake") if faults else tr("bad name"), faults=faults + path_faults(path))
    as_1_0 = None
    if rewritten := from_legacy.converted(table):
        faults = [problem.line(shown) for problem in errors(verdict.check(rewritten))]
        if faults:
            return Fit(brief=count(len(faults), "mistake"), faults=faults)
        table, as_1_0 = rewritten, rank_table.dump(rewritten)
    servers = rank_table.servers(table) or rank_table.servers_of_ranks(table)
    if not servers:
        name = formats.FORMATS[formats.detect(table)[0]]
        text = tr(
            "{path} is a table of {name}; these scripts start ranks from tables with a server_list",
            path=shown,
            name=name,
        )
        return Fit(brief=name, faults=[text])
    if len(servers) != 1:
        text = tr(
            "{path} is for {number} servers, this script starts ranks on one; build one for this host",
            path=shown,
            number=len(servers),
        )
        return Fit(brief=count(len(servers), "server"), faults=[text])
    fit = _of_server(shown, servers[0], devices, is_named)
    return fit if fit.faults else fit.replace(text=as_1_0)


def _of_server(shown: str, server: rank_table.Server, devices: list[int], is_named: bool) -> Fit:
    ranks = sorted((int(device.rank_id), int(device.device_id)) for device in server.devices)
    found = sorted(device for _, device in ranks)
    if found != sorted(devices):
        others = (
            tr('choose them with --devices "{devices}" or ', devices=comma(found)) if len(found) == len(devices) else ""
        )
        text = tr(
            "{path} is for {theirs}, this launch is on {ours}; {others}name another table with --rank_table",
            path=shown,
            theirs=named("device", found),
            ours=named("device", devices),
            others=others,
        )
        return Fit(brief=named("device", found), faults=[text])
    fit = Fit(ranks=ranks, device_ips=server.device_ips())
    if not host.servers_here([(server.names, server.device_ips())], looks_up=is_named):
        if is_named and host.may_be_here(server.names, server.device_ips()):
            return fit.replace(remark=unknown_host(server.server_id))
        if not server.server_id:
            brief = tr("does not say where its ranks are")
            return Fit(brief=brief, faults=[f"{shown} {brief}"])
        text = tr(
            "{path} is for server {name}, which is not an address of this host; build this "
            "host's with hccl_tools/hccl_tools.py (in a container, mount the host's "
            "/etc/hccn.conf)",
            path=shown,
            name=one_line(server.server_id),
        )
        return Fit(brief=tr("server {name}", name=one_line(server.server_id)), faults=[text])
    return fit


def unknown_host(server_id: str) -> str:
    """The note about a table that is taken although it may be another host's."""
    if not server_id:
        return tr("note: the rank table does not say where its ranks are, so they are taken to be on this host")
    name = one_line(server_id)
    return tr("note: server {name} of the rank table is not an address, so it is taken to be this host", name=name)


def path_faults(path: str) -> list[str]:
    """The faults of the path: validate_hccl.py only warns about them, but here HCCL will read the file."""
    problem = verdict.path_problem(path)
    return [tr("{problem}; move the file", problem=problem.text)] if problem else []


def without_servers(path: str) -> str:
    """Why a valid table of another version cannot be used."""
    return tr(
        "{path} has no server_list; ranks are started from versions 1.0 and 1.2, and from the legacy formats",
        path=one_line(path),
    )


def command_to_rewrite(path: str, written: str) -> tuple[str, ...]:
    """The command that writes a table of a legacy format as version 1.0, for --dry_run."""
    tool = project.path("hccl_tools", "merge_hccl.py")
    return trainer_command.python(), tool, path_word(path), "--output", written
