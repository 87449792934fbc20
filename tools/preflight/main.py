"""Runs scripts/preflight.sh and ``mslaunch check``: queries the hosts of a job, and prints what differs or blocks."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Sequence

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.machine import interpreter

interpreter.check()

from hccl_tools.commands import arguments, boundary
from hccl_tools.common import colours, documents, project, script_help, utc
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import count, folder_fault, one_line
from hccl_tools.hosts import hostfile
from hccl_tools.table import device_range
from tools.launch.engines import ports, slurm
from tools.preflight import by_srun, check, program_files, reach, words
from tools.preflight.trial import command as trial

PROGRAM = "preflight.sh"

say = functools.partial(boundary.say, PROGRAM)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of the command."""
    options = parse_arguments(argv)
    return boundary.run(PROGRAM, lambda: run(options))


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """What the user typed."""
    exits = tr(
        "Exit: 0 all hosts are alike and ready, 1 differences that do not stop the job, 78 something would "
        "stop the job, 2 usage."
    )
    parser = Parser(PROGRAM, "\n".join([*script_help.page(project.path("scripts", PROGRAM)), "", exits]))
    usage = tr("bash scripts/preflight.sh [options] [RANK_TABLE_FILE]")
    parser.usage, parser.usage_of_mistake = argparse.SUPPRESS, usage
    table = tr("the rank table of the job; without a list of hosts, its servers are asked; - is standard input")
    parser.add_argument("table", metavar="RANK_TABLE_FILE", nargs="?", help=table)
    parser.option("hostfile")
    parser.option("hosts")
    parser.option("ssh")
    parser.option("train_script")
    parser.option("config")
    parser.option("data")
    parser.option("devices", tr(" (default: all)"))
    parser.option("log_dir", default="logs")
    parser.option("trial")
    parser.option("pod_wait", tr(" (only in the pods of a job; default: MS_TOPO_TIMEOUT, else 600)"))
    arguments.add_hccn_conf(parser)
    parser.option("output", tr(": the result as a page for a browser, beside what is printed"))
    parser.json()
    options = parser.parse_args(argv)
    if options.hostfile and options.hosts:
        parser.error(tr("--hostfile and -H both name the hosts; leave out one of them"))
    parser.refuse_empty(options)
    return options


def run(options: argparse.Namespace) -> int:
    """Asks, compares and prints; the exit code."""
    if fault := folder_fault():
        raise Refusal(USAGE, fault)
    if options.output:
        from tools.preflight import page  # only here: it takes time to import
        from tools.run_page import saving

        saving.check(options.output, page.PROGRAM)
    if not (options.hostfile or options.hosts or by_srun.is_allocation()) and reach.is_pod_of_job():
        return _of_pods(options)
    hosts = _hosts(options)
    named = [(host.name, host.slots) for host in hosts if not host.spare]
    table = reach.read_table(options.table, named) if options.table else None
    job = _job(options, table)
    way = _way(options, hosts, table)
    found = check.run(way, job)
    if options.trial:
        found = trial.added(found, _trial(options, way, job), say)
    _tell(found, options)
    return words.STATUS[words.verdict(found)]


def _job(options: argparse.Namespace, table: reach.Table | None) -> check.Job:
    return check.Job(
        log_dir=options.log_dir,
        data=options.data or "",
        program=program_files.of(options.train_script or "", options.config or ""),
        devices=_devices(options.devices),
        ports=_ports(),
        hccn_conf=options.hccn_conf,
        table=table,
    )


def _of_pods(options: argparse.Namespace) -> int:
    """The same in a pod of a job: the command runs in all of them, and one prints the whole."""
    from tools.preflight.pods import command  # only here: it takes time to import

    if options.trial:
        raise misused("--trial starts its job over ssh, which pods do not have; leave it out")
    wait = whole_number(options.pod_wait, 0, 10**6) if options.pod_wait is not None else None
    if options.pod_wait is not None and wait is None:
        what = tr("is not a number from {least} to {most}", least=0, most=10**6)
        raise Refusal(USAGE, f"--pod_wait {one_line(options.pod_wait)} {what}")
    names = ("train_script", "config", "data", "devices", "log_dir")
    typed_alike = [f"--{name} {getattr(options, name)}" for name in names if getattr(options, name) is not None]
    tell = functools.partial(_tell, options=options)
    tell_line = say if options.json else _print_line
    return command.run(_job(options, None), typed_alike, options.table, wait, say, tell, tell_line)


def _print_line(line: str) -> None:
    boundary.escape_missing_letters()
    print(line)


def _tell(found: words.Found, options: argparse.Namespace) -> None:
    """Prints the result, and writes the page of it.  Raises Refusal."""
    made = utc.text()
    if options.json:
        print(documents.json_text(words.document(found, made)))
    else:
        boundary.escape_missing_letters()
        print(words.page(found, colours.wanted(sys.stdout)), end="")
    if options.output:
        from tools.preflight import page  # only here: it takes time to import
        from tools.run_page import saving

        saving.save(page.html_of(found, made), options.output, options.output)


def _hosts(options: argparse.Namespace) -> list[hostfile.Host]:
    """The hosts that the options list."""
    if options.hostfile:
        return hostfile.read(options.hostfile).hosts
    return reach.words(options.hosts) if options.hosts else []


def _way(options: argparse.Namespace, hosts: list[hostfile.Host], table: reach.Table | None) -> reach.Way:
    """How the hosts of these options are reached."""
    if hosts:
        return reach.over_ssh(*reach.listed(hosts), options.ssh, say)
    if by_srun.is_allocation():
        nodes = slurm.allocated_nodes()
        say(tr("asking {hosts} of Slurm job {job} by srun", hosts=count(len(nodes), "host"), job=slurm.job_id()))
        return by_srun.over_srun(nodes, {})
    if table:
        return reach.over_ssh(reach.of_table(table), {}, options.ssh, say)
    return reach.over_ssh(reach.this_host(), {}, options.ssh, say)


def _trial(options: argparse.Namespace, way: reach.Way, job: check.Job) -> trial.Wanted:
    """What a trial needs; without named hosts it is this one."""
    is_listed = bool(options.hostfile or options.hosts or options.table)
    homes = reach.homes(job.table, way.hosts) if job.table else {}
    return trial.Wanted(
        hosts=way.hosts,
        logins=way.logins if is_listed else {},
        slurm=way.slurm,
        slots={**{name: len(server.devices) for name, server in homes.items()}, **way.slots},
        log_dir=job.log_dir,
        data=job.data,
        ssh=options.ssh or "",
        devices=job.devices,
    )


def _devices(typed_range: str | None) -> list[int] | None:
    """The devices of --devices.  Raises Refusal."""
    try:
        return None if typed_range is None else list(device_range.parse(typed_range))
    except device_range.RangeError as error:
        raise Refusal(error.status, *(f"--devices: {line}" for line in error.lines)) from error


def _ports() -> list[int]:
    """The scheduler's port, where a variable names one."""
    port = ports.named()
    return [] if port is None else [port]


if __name__ == "__main__":
    interpreter.of_user()
    sys.exit(main())
