"""Chooses the rank table of a launch: the one that the user names, one nearby that fits, or a new one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from hccl_tools.build import from_legacy, rank_lists
from hccl_tools.check import verdict
from hccl_tools.common import project
from hccl_tools.common.language import marked, tr
from hccl_tools.common.problem import Problem, errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import named, one_line, some
from hccl_tools.machine import hccn, host
from hccl_tools.machine.programs import path_word
from hccl_tools.table import rank_table
from hccl_tools.table.address import is_one_of
from tools.launch.engines.placement import comma
from tools.launch.programs import trainer_command
from tools.launch.request import Request
from tools.launch.tables import table_fit
from tools.launch.tables.table_fit import Fit

_FAILED = marked("no rank table could be built")
_NAME = re.compile(r"hccl_|.*rank_?table", re.IGNORECASE)  # of a file that is meant as a rank table
_KEY = b'"server_list"'  # is in every rank table that a launch takes
_MOST_FILES = 100  # of either kind of name in a folder: one with more of them has data in it
_MOST_NAMED = 5  # tables in the line about those that are not taken


class LaunchTable(Record):
    path: str  # absolute
    ranks: list[tuple[int, int]]  # (rank, device) of those that this command starts, in rank order
    remarks: tuple[str, ...]  # how it came about, for the user
    text: str | None = None  # of a table that is not yet written to `path`
    setup: tuple[str, ...] = ()  # the command that writes such a table by hand, for --dry_run
    digest: str | None = None  # its SHA-256, where it must be the same on several hosts
    # if it is a part of the table of all hosts: where that is, and its text if it is not written yet
    whole: tuple[str, str | None] | None = None


def choose(request: Request, devices: list[int], run_dir: str, beside: str | None = None) -> LaunchTable | None:
    """The table for a launch on `devices` of this one host; `beside`: the program's file.  Raises Refusal.

    None: CPU ranks do without one, unless it is named, asked for by --hccn_conf, or there.
    """
    path = request.rank_table or os.environ.get("RANK_TABLE_FILE")
    if path:
        origin = "--rank_table" if request.rank_table else tr("RANK_TABLE_FILE (from your shell)")
        if request.ranks_file:
            origin = tr("RANK_TABLE_FILE (from {script})", script=one_line(request.trainer_arguments[0]))
        fit = table_fit.examine(path, devices, request.chip, is_named=True)
        if fit.faults:
            lines = [f"{origin}: {fault}" for fault in fit.faults]
            if request.exclude is not None:
                text = tr(
                    "--exclude leaves devices out, but this table may contain them; without the table, the "
                    "launch builds one"
                )
                lines.append(f"{origin}: {text}")
            raise Refusal(REFUSED, *lines)
        remarks = (tr("rank table: {path}", path=one_line(path)), *filter(None, [fit.remark]))
        return taken(path, fit, run_dir, remarks)
    path, found, others = _find_nearby(request, devices, beside)
    if not found:
        if request.device_target == "CPU" and not request.hccn_conf:
            return None
        return build(request, devices, run_dir, others)
    if os.path.dirname(path):
        remark = tr("rank table: {path}, found next to the program", path=one_line(path))
    else:
        remark = tr("rank table: {path}, found in this folder", path=one_line(path))
    return taken(path, found, run_dir, (*others, remark))


def taken(path: str, fit: table_fit.Fit, run_dir: str, remarks: tuple[str, ...]) -> LaunchTable:
    """The table of a launch that fits; a table in a legacy format is converted for the run.  Raises Refusal."""
    if fit.text is None:
        return LaunchTable(path=os.path.abspath(path), ranks=fit.ranks, remarks=remarks)
    written = os.path.join(run_dir, from_legacy.NAME)
    if faults := table_fit.path_faults(written):
        raise Refusal(REFUSED, *faults)
    return LaunchTable(
        path=written,
        ranks=fit.ranks,
        remarks=(*remarks, from_legacy.remark(path, written)),
        text=fit.text,
        setup=table_fit.command_to_rewrite(path, written),
    )


def build(request: Request, devices: list[int], run_dir: str, others: list[str]) -> LaunchTable:
    """A table of this host for one run, kept in its folder; `others`: remarks on other tables.  Raises Refusal."""
    if request.chip == rank_lists.CHIP:
        return _build_950(request, devices, run_dir, others)
    conf = request.hccn_conf or hccn.DEFAULT_CONF
    try:
        found, source = hccn.addresses(devices, conf)
    except hccn.AddressError as error:
        raise Refusal(REFUSED, *others, f"{tr(_FAILED)}: {error}") from error
    table = rank_table.build([(device, found[device]) for device in devices], host.LOOPBACK)
    options = ("--devices", comma(devices), "--server_ip", host.LOOPBACK, "--hccn_conf", path_word(conf))
    remark = tr(
        "rank table: built for {devices}, addresses from {source}",
        devices=named("device", devices),
        source=one_line(source),
    )
    name = rank_table.file_name(devices, host.LOOPBACK)
    built = LaunchTable(
        path=os.path.join(run_dir, name),
        ranks=list(enumerate(devices)),
        remarks=(*others, remark),
        text=rank_table.dump(table),
        setup=options,
    )
    return _checked(request, built, verdict.check(table, request.chip))


def _build_950(request: Request, devices: list[int], run_dir: str, others: list[str]) -> LaunchTable:
    """The same on a 950 host, whose table has the networks of its devices."""
    try:
        table, problems = rank_lists.of_950(devices, rank_lists.read_root_info(rank_lists.ROOT_INFO))
    except Refusal as error:
        raise Refusal(REFUSED, *others, *(f"{tr(_FAILED)}: {line}" for line in error.lines)) from error
    remark = tr(
        "rank table: built for {devices}, networks from {source}",
        devices=named("device", devices),
        source=one_line(rank_lists.ROOT_INFO),
    )
    built = LaunchTable(
        path=os.path.join(run_dir, rank_lists.file_name_of_950(table)),
        ranks=list(enumerate(devices)),
        remarks=(*others, remark),
        text=rank_table.dump(table),
        setup=("--devices", comma(devices)),
    )
    return _checked(request, built, problems)


def _checked(request: Request, built: LaunchTable, problems: list[Problem]) -> LaunchTable:
    """The table with the whole command that writes it by hand; so far it has the options.  Raises Refusal."""
    faults = [problem.line(tr(_FAILED)) for problem in errors(problems)]
    if faults := faults + table_fit.path_faults(built.path):
        raise Refusal(REFUSED, *faults)
    generator = (trainer_command.python(), project.path("hccl_tools", "hccl_tools.py"))
    chip = ("--generation", request.generation) if request.generation else ()
    return built.replace(setup=(*generator, *built.setup, *chip, "--output", built.path))


def _find_nearby(request: Request, devices: list[int], beside: str | None) -> tuple[str, Fit | None, list[str]]:
    """Finds tables in the current folder and next to the program.

    (path, Fit of the first table that fits, or None; remarks).  `beside`: the program's file."""
    taken, fit, others = "", None, []
    addresses = _Addresses(request, devices)
    # A table of so few devices has fewer bytes.  A larger file is not read to its end: that would delay every launch.
    most = (1 << 16) + (1 << 12) * len(devices)
    for path in _candidates(_folders(beside), most):
        brief = tr("more than {number} bytes", number=most)
        if not os.path.isfile(path) or os.path.getsize(path) <= most:
            found = table_fit.examine(path, devices, request.chip)
            brief = found.brief or addresses.contradict(found)
            if not brief and not fit:
                taken, fit = path, found
                continue
        others.append(f"{one_line(path)} ({brief or tr('also fits')})")
    return taken, fit, _about(others)


def _about(others: list[str]) -> list[str]:
    """One line, however many there are."""
    if not others:
        return []
    text = tr(
        "rank tables not used: {others}; --rank_table FILE selects one, or reports what is wrong with it",
        others=some(others, _MOST_NAMED),
    )
    return [text]


def _folders(beside: str | None) -> list[str]:
    """The current folder, and that of the program; both as a user would type them."""
    there = os.path.dirname(beside or "")
    return [""] if not there or os.path.samefile(there, ".") else ["", there]


def _candidates(folders: list[str], most: int) -> Iterator[str]:
    """The paths of the rank tables in `folders`; in each those named by hccl_tools.py come first."""
    for folder in folders:
        names = _names(folder or ".")
        meant = [name for name in names if _NAME.match(name)]
        meant.sort(key=lambda name: not name.startswith("hccl_"))
        yield from (os.path.join(folder, name) for name in meant[:_MOST_FILES])
        others = [os.path.join(folder, name) for name in names if not _NAME.match(name)]
        yield from (path for path in others[:_MOST_FILES] if _is_table(path, most))


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:  # a folder whose files may be used, but not listed
        return []


def _is_table(path: str, most: int) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return _KEY in file.read(most)
    except OSError:
        return False


class _Addresses:
    """The addresses that this host's devices have.  They are asked for once, and only if a table fits otherwise."""

    def __init__(self, request: Request, devices: list[int]) -> None:
        self.conf = request.hccn_conf or hccn.DEFAULT_CONF
        self.devices = devices
        self.found: dict[int, str | None] | None = {} if request.device_target == "CPU" else None

    def contradict(self, fit: Fit) -> str:
        """Why the table is another host's: an example from a document, or a copy.  Empty if there is no sign of it."""
        if self.found is None:
            try:
                self.found, _ = hccn.addresses(self.devices, self.conf)
            except hccn.AddressError:  # nothing to compare with
                self.found = {}
        for device, ip in fit.device_ips.items():
            if ip is not None and self.found.get(device) is not None and not is_one_of(self.found[device], ip):
                return tr(
                    "device {device} has {address}, not {other}",
                    device=device,
                    address=self.found[device],
                    other=one_line(ip),
                )
        return ""
