"""Starts the rank of an agent: its log, its environment, its cores; and finds what it leaves when it has ended."""

from __future__ import annotations

import os
import sys

from tools.launch import log_links
from tools.rank import device, environment, places
from tools.rank.told import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from tools.rank.environment import Environment
    from tools.rank.told import Told


def enter(told: Told) -> None:
    """Goes to the folder where the command was typed."""
    try:
        os.chdir(told["FOLDER"])
    except OSError:
        refuse(f"the folder {told['FOLDER']}, where the command was typed, is not there")
    os.umask(int(told["UMASK"], 8))


def open_log(told: Told, away: bool) -> tuple[str, int]:
    """(path, descriptor) of the log in the run's folder.

    On a host that does not see that folder, the agent makes one of the same name.
    """
    path = os.path.join(told["LOGS"], "scheduler.log" if told.is_scheduler else f"rank_{told.name}.log")
    if away:
        try:
            os.makedirs(told["LOGS"], exist_ok=True)
        except OSError:
            refuse(f"the log folder {told['LOGS']} cannot be made")
    try:
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError:
        refuse(f"the log {path} cannot be written")
    if told["LINKS"] and not told.is_scheduler:
        link(told, path, log)
    return path, log


def link(told: Told, path: str, log: int) -> None:
    """Makes the link to the log in Open MPI's layout; a foreign file there stays, and the log reports it."""
    place = log_links.place(told["LINKS"], int(told.name), int(told.base.get(b"RANK_SIZE", b"1")))
    if not log_links.is_ours(place):
        places.note(log, f"{place} is not a link to this log: it is not of a launch of ours, and left as it is")
        return
    try:
        log_links.make(place, path)
    except OSError as error:
        places.note(log, f"{place} cannot be made: {error.strerror}")


def cores_of(told: Told) -> dict[int, list[int]] | None:
    """The cores of this rank, as places.Bound takes them; None if ranks are not bound."""
    mode, _, rest = told["BIND"].partition(" ")
    target, *shares = rest.split() or [""]
    for share in shares:
        rank, _, places_of_it = share.partition("=")
        cores = places_of_it.partition("@")[0]
        if rank == told.name or (rank == "scheduler" and told.is_scheduler):
            return {0 if told.is_scheduler else int(rank): [int(core) for core in cores.split(",") if core]}
    if not mode or told.is_scheduler:
        return None
    # a rank of another host, which the plan did not see
    from tools.launch.devices import core_shares

    devices = device.physical(told)
    ranks = len(devices)
    if told["ENGINE"] == "mpirun":
        ranks = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", ranks))
    return {int(told.name): core_shares.here(mode, target, told.local_rank, ranks, devices)}


def memory_of(told: Told) -> list[str]:
    """The words before the rank's command that bind its memory to NUMA nodes; nothing if it is not bound."""
    for share in told["BIND"].split()[2:]:
        rank, _, places_of_it = share.partition("=")
        nodes = places_of_it.partition("@")[2]
        if rank == told.name and nodes:
            from tools.launch.programs import rank_words

            return rank_words.on_nodes(nodes)
    return []


def environment_of(told: Told, log: int, plogs: places.Plogs) -> Environment:
    """The variables of the trainer, or the scheduler, in addition to the job's part."""
    if told.is_scheduler:
        return {b"MS_ROLE": b"MS_SCHED"}
    own = environment.of_rank(
        told.base,
        rank=int(told.name),
        local_rank=told.local_rank,
        device=device.number(told),
        sizes=told["SIZES"],
        mark=os.fsdecode(told.job),
        engine=told["ENGINE"],
    )
    if not told.job:
        del own[environment.MARK]
    return {**own, **plogs.open(told.name, log)}


def begin(told: Told, words: list[str], log: int, start: Callable[[list[str], Environment], None]) -> None:
    """Calls `start` as the rank is to run: with its cores, its policy and its environment, which is kept in a file."""
    if told.is_scheduler:
        scheduler = os.path.join(sys.path[0], "tools", "launch", "engines", "mindspore_scheduler.py")
        words = [told["PYTHON"], "-u", scheduler]
        told.base.pop(b"RANK_TABLE_FILE", None)
    cores = cores_of(told)
    own = environment_of(told, log, places.Plogs(told["PLOGS"], told["LOGS"]))
    if told["WORDS"] and not told.is_scheduler:
        words = _words_of(told, words, own)
    if not told.is_scheduler:
        words = [*memory_of(told), *words]
    if told["FILES"] and not told.is_scheduler:
        own[b"PWD"] = os.fsencode(_enter_folder(told))
    with places.Bound(cores, 0 if told.is_scheduler else int(told.name), log) as bound:
        own.update(bound)
        if told.is_scheduler:
            places.keep(
                os.path.join(told["LOGS"], "scheduler.env"),
                environment.as_shell(sorted({**told.base, **own}.items())),
                log,
            )
        else:
            places.Kept(told.base, told["LOGS"]).write(told.name, own, log)
        with places.BatchPolicy(b"MS_WORKER_NUM" in told.base and not told.is_scheduler):
            start(words, environment.whole(told.base, own))


def _words_of(told: Told, words: list[str], own: Environment) -> list[str]:
    """The rank's command with the words that are its own, see rank_words.py."""
    from tools.launch.programs import rank_words

    device, world, run_dir = (
        os.fsdecode(found.get(name, b""))
        for found, name in ((own, b"DEVICE_ID"), (told.base, b"RANK_SIZE"), (told.base, b"LOG_DIR"))
    )
    return rank_words.replaced(words, rank_words.of_rank(int(told.name), told.local_rank, device, world, run_dir))


def _enter_folder(told: Told) -> str:
    """Makes the rank's folder on this host, unless it is there, and goes there; returns it."""
    from tools.launch import rank_folders

    run_dir = os.fsdecode(told.base.get(b"LOG_DIR", b""))
    try:
        folder = rank_folders.make(run_dir, told.name, told["FILES"].split("\n")[1:])
        os.chdir(folder)
    except OSError as error:
        refuse(f"{rank_folders.of_rank(run_dir, told.name)} cannot be made: {error.strerror or error}")
    return folder


def become(words: list[str], found: Environment, log: int) -> NoReturn:
    """Makes this process the trainer: the reports of an agent would not be read."""
    null = os.open(os.devnull, os.O_RDONLY)
    for descriptor, stream in ((null, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, stream)
    try:
        os.execvpe(words[0], words, found)
    except OSError as error:
        os.write(2, os.fsencode(f"{words[0]}: {error.strerror}\n"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def leave_plogs(told: Told, status: int) -> None:
    """The rank has ended: removes its folder of plogs if it does not stay, or is empty.  One of the user stays."""
    plogs = places.Plogs(told["PLOGS"], told["LOGS"])
    folder = plogs.folder(told.name)
    if not folder or plogs.theirs or os.path.islink(os.path.dirname(folder)):
        return
    if plogs.keep == "none" or (plogs.keep == "failed" and status == 0):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    for path in (folder, os.path.dirname(folder)):
        try:
            os.rmdir(path)
        except OSError:
            continue  # it is not empty, or not there any more
