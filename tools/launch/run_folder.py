"""The folder of one run: its name, its content at the start, and the links to it and in it."""

from __future__ import annotations

import os
import time

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import REFUSED, USAGE, Refusal, refused
from hccl_tools.common.words import clauses, one_line, short_path, some
from hccl_tools.table import rank_table
from tools.launch import log_links, plogs, record, train_log
from tools.launch.engines.facts import MpirunFacts
from tools.launch.planned import Plan
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


TRIAL = "preflight_trial-"  # what a folder of logs of a trial begins with: its jobs leave no train.log
RANKS_FILE = "ranks.sh"  # what each rank runs, where a start script states it (--zoo)
_LONGEST = 200  # bytes of a name; a number and .log come behind it


class Taken(Exception):
    """Another launch made a folder of this name first: on another host, or in another container, with the same
    process id, in the same second and the same folder for logs."""


def free_name(request: Request) -> str:
    """The absolute path, not taken yet, of the folder that this run will get.  Raises Refusal."""
    logs = check_named("log_dir", request.log_dir or "logs")
    name = request.script[:-3] if request.script.endswith(".sh") else request.script
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    first = path = os.path.join(logs, f"{name}-{stamp}-{request.job_pid}")
    number = 1
    while os.path.lexists(path):
        number += 1
        path = f"{first}-{number}"
    return path


def fill(plan: Plan) -> list[str]:
    """Makes the folder with launch.json and a new rank table, and moves the links to it; returns remarks.

    Raises Refusal and Taken.
    """
    try:
        make(plan.run_dir)
        put_table(plan)
        put_ranks_file(plan)
        record.begin(plan)
        if plan.plogs and plan.request.engine in ("local", "msrun"):  # else agents make them, on the hosts of the ranks
            plogs.make(plan.plogs, (rank for rank, _ in plan.ranks), plan.run_dir)
        if plan.rank_files is not None and plan.request.engine in ("local", "msrun"):  # the same
            from tools.launch import rank_folders

            for rank, _ in plan.ranks:
                rank_folders.make(plan.run_dir, rank, plan.rank_files)
        if plan.request.worker_log_name is not None:
            make_worker_links(plan)
        if plan.resumed:
            plan.resumed.make()
    except (OSError, Refusal) as error:
        import shutil  # not at the top: only this refusal needs it

        shutil.rmtree(plan.run_dir, ignore_errors=True)
        if isinstance(error, Refusal):
            raise
        raise refused(
            "{folder} cannot be written: {reason}; name another folder with --log_dir",
            folder=one_line(plan.run_dir),
            reason=strerror(error),
        ) from error
    logs, name = os.path.split(plan.run_dir)
    member = f"rank_{plan.ranks[0][0]}" if plan.ranks else "scheduler"
    first = os.path.join(plan.run_dir, f"{member}.log")
    shown = os.path.relpath(first) if first.startswith(os.getcwd() + os.sep) else first
    links = move_link(os.path.join(logs, "latest"), name)
    if not os.path.basename(os.path.dirname(logs)).startswith(TRIAL):
        links += move_link(train_log.NAME, shown)
    return [*links, *clear_links(plan)]


def put_again(plan: Plan, document: dict[str, Any]) -> None:
    """The same for a restart with another plan, in the folder that the run has; document: its launch.json.

    Raises Refusal.
    """
    try:
        put_table(plan)
        if plan.resumed:
            plan.resumed.make()
        record.again(document, plan, (plan.request.attempt or 1) - 1)
    except OSError as error:
        raise refused(
            "{folder} cannot be written: {reason}", folder=one_line(plan.run_dir), reason=strerror(error)
        ) from error


def put_table(plan: Plan) -> None:
    """Writes a new rank table to its place: with several hosts, on all of them.  Raises OSError and Refusal."""
    table = plan.table
    if not table:
        return
    for path, text in ((table.path, table.text), table.whole or ("", None)):
        if text is not None:
            rank_table.write(text, path)
    if table.digest and plan.hosts:
        from tools.launch.hosts import table_servers

        table_servers.distribute(plan.request, table, list(dict.fromkeys(plan.hosts)))


def put_ranks_file(plan: Plan) -> None:
    """Moves the file with what each rank of a start script runs (--zoo) to its place.  Raises OSError."""
    if plan.request.ranks_file:
        with open(plan.request.ranks_file, "rb") as draft, open(f"{plan.run_dir}/{RANKS_FILE}", "wb") as file:
            file.write(draft.read())
        os.unlink(plan.request.ranks_file)


def make(path: str) -> None:
    """Makes the folder and those above it.  Raises OSError, and Taken if it is there."""
    try:
        os.makedirs(path)
    except FileExistsError as error:
        if os.path.lexists(path):
            raise Taken from error
        raise


def move_link(link: str, target: str) -> list[str]:
    """Makes `link` point to `target`.  Keeps what is neither such a link nor our copy of a log, with a remark."""
    if os.path.islink(link):
        where = os.readlink(link)
        ours = log_links.is_log(where) or log_links.is_run(os.path.basename(where))
    else:
        ours = link == train_log.NAME and train_log.is_copy(link)
    if os.path.lexists(link) and not ours:
        return [tr("{link} does not belong to a run; it is not changed", link=one_line(link))]
    draft = f"{link}.{os.getpid()}.part"
    try:
        os.symlink(target, draft)
        os.replace(draft, link)
    except OSError as error:
        return [tr("cannot make the link {link}: {reason}", link=one_line(link), reason=strerror(error))]
    return []


def clear_links(plan: Plan) -> list[str]:
    """Removes the links of earlier launches from the folder of --output_filename; what else is there stays, with a
    remark."""
    folder = plan.engine.mpi.logs if isinstance(plan.engine, MpirunFacts) else None
    if not folder:
        return []
    log_links.clear(folder)
    found = list(log_links.foreign(folder, (rank for rank, _ in plan.ranks), len(plan.ranks)))
    if not found:
        return []
    text = tr(
        "{paths}: not made by this launcher, and not changed; the logs of these ranks are only in {folder}",
        paths=some([one_line(short_path(path)) for path in found], 2),
        folder=one_line(short_path(plan.run_dir)),
    )
    return [text]


def check_named(option: str, named: str) -> str:
    """The absolute path of the folder that the user names, if it can be made and written.  Raises Refusal."""
    path = existing = os.path.abspath(named)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        words = tr("{path} is not a folder; name another one", path=one_line(existing))
        raise Refusal(REFUSED, f"--{option} {one_line(path)}: {words}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise refused(
            "--{option} {folder} cannot be written; name another one with --{option}",
            option=option,
            folder=one_line(path),
        )
    return path


def check_worker_log_name(request: Request) -> None:
    """Raises Refusal for names that a file cannot have."""
    name = request.worker_log_name or ""
    good = name.isprintable() and "/" not in name and name.strip() == name and not name.startswith((".", "-"))
    if not good or len(os.fsencode(name)) > _LONGEST:
        text = tr("--worker_log_name {name}: is not the name of a file", name=one_line(name))
        raise Refusal(USAGE, clauses(text, tr("write one such as worker_{ip}_{hostname}; --log_dir names the folder")))


def make_worker_links(plan: Plan) -> None:
    """Makes links of msrun's names to the logs of this host's ranks, not there yet.  Raises OSError and Refusal."""
    name = plan.request.worker_log_name
    if name is None:
        return
    if "{ip}" in name:
        from tools.launch.hosts import network  # it imports socket

        name = name.replace("{ip}", network.own_address_towards([plan.cluster.scheduler_host]))
    name = name.replace("{hostname}", os.uname().nodename.replace("/", "_"))
    for rank, _ in plan.ranks:
        log, link = f"rank_{rank}.log", f"{name}_{rank}.log"
        if link != log:
            os.symlink(log, os.path.join(plan.run_dir, link))
